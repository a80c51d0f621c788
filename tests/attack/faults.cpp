#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

/// A library for LD_PRELOAD that counts the file-system calls of a program below a folder, and lets one of
/// them fail. The environment says which:
///   FAULTS_FOLDER  calls on files elsewhere are not counted
///   FAULTS_KIND    kill: die by SIGKILL before the call. ENOSPC, EIO: the call fails. full: it and all later
///                  ones that need space fail with ENOSPC. short: a read or write moves half of its bytes.
///   FAULTS_CALL    which of the calls that this can happen to, from 1
///   FAULTS_LOG     receives the call and its path; without FAULTS_CALL, the number of calls for each kind

namespace {

enum class Kind { Kill, NoSpace, InputOutput, Full, Short };
constexpr std::array<const char*, 5> kKinds = {"kill", "ENOSPC", "EIO", "full", "short"};
// what a call does
enum class Act { Read, Write, Create, Change, Close };
constexpr size_t kActs = 5;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Kind kind_named(const std::string& name) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (name == kKinds[i]) return static_cast<Kind>(i);
  }
  return Kind::InputOutput;
}

// whether a fault of this kind can happen to a call
bool applies(Kind kind, Act act) {
  if (kind == Kind::Short) return act == Act::Read || act == Act::Write;
  if (kind == Kind::NoSpace || kind == Kind::Full) return act == Act::Write || act == Act::Create;
  return kind == Kind::InputOutput || act != Act::Read;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

struct Faults {
  std::string folder = variable("FAULTS_FOLDER"), log = variable("FAULTS_LOG");
  Kind kind = kind_named(variable("FAULTS_KIND"));
  int call = std::atoi(variable("FAULTS_CALL").c_str());
  std::atomic<int> seen = 0;
  std::array<std::atomic<int>, kActs> acts = {};
  std::array<std::atomic<bool>, 4096> watched = {};  // file descriptors

  void report(const std::string& line) const {
    if (log.empty()) return;
    const int file =
        real<int (*)(const char*, int, ...)>("open")(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (real<ssize_t (*)(int, const void*, size_t)>("write")(file, line.data(), line.size()) < 0) return;
    real<int (*)(int)>("close")(file);
  }
  // the number of calls at which each kind of fault can happen
  std::string counts() const {
    std::string text;
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      int count = 0;
      for (size_t act = 0; act < kActs; ++act) {
        if (applies(static_cast<Kind>(kind), static_cast<Act>(act))) count += acts[act];
      }
      text += std::string(kKinds[kind]) + " " + std::to_string(count) + "\n";
    }
    return text;
  }
};

Faults& faults() {
  // never destroyed: files are closed until the very end
  static Faults* const kFaults = new Faults;
  return *kFaults;
}

[[gnu::destructor]] void report_counts() {
  if (faults().call == 0) faults().report(faults().counts());
}

std::string path_of(int descriptor) {
  char text[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), text, sizeof text);
  return {text, static_cast<size_t>(size < 0 ? 0 : size)};
}

bool is_below(const std::string& path) {
  const std::string& folder = faults().folder;
  return !folder.empty() && path.compare(0, folder.size(), folder) == 0 &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

bool watches(int descriptor) {
  return descriptor >= 0 && descriptor < 4096 && faults().watched[static_cast<size_t>(descriptor)];
}

void watch(int descriptor, bool on) {
  if (descriptor >= 0 && descriptor < 4096) faults().watched[static_cast<size_t>(descriptor)] = on;
}

std::string absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  if (folder != AT_FDCWD) return path_of(folder) + "/" + path;
  char text[4096];
  return std::string(getcwd(text, sizeof text) ? text : "") + "/" + path;
}

enum class Verdict { Go, Fail, Half };

// counts a call, and says what becomes of it; errno is set for a failure
Verdict verdict(const char* name, Act act, const std::string& path) {
  Faults& f = faults();
  ++f.acts[static_cast<size_t>(act)];
  if (!applies(f.kind, act)) return Verdict::Go;
  const int number = ++f.seen;
  if (f.call == 0 || number < f.call || (number > f.call && f.kind != Kind::Full)) return Verdict::Go;
  if (number == f.call) f.report(std::string(name) + " " + path + "\n");
  if (f.kind == Kind::Kill) raise(SIGKILL);
  if (f.kind == Kind::Short) return Verdict::Half;
  errno = f.kind == Kind::InputOutput ? EIO : ENOSPC;
  return Verdict::Fail;
}

bool fails(const char* name, Act act, const std::string& path) {
  return is_below(path) && verdict(name, act, path) == Verdict::Fail;
}

int opened(const char* name, int folder, const char* path, int flags, mode_t mode) {
  const std::string whole = absolute(folder, path);
  const bool creates = (flags & (O_CREAT | O_TRUNC)) != 0;
  if (fails(name, creates ? Act::Create : Act::Read, whole)) return -1;
  const int file = real<int (*)(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
  if (is_below(whole)) watch(file, true);
  return file;
}

FILE* stream(const char* name, const char* path, const char* mode) {
  const std::string whole = absolute(AT_FDCWD, path);
  if (fails(name, std::strpbrk(mode, "wa+") ? Act::Create : Act::Read, whole)) return nullptr;
  FILE* file = real<FILE* (*)(const char*, const char*)>("fopen")(path, mode);
  if (file && is_below(whole)) watch(fileno(file), true);
  return file;
}

// how much of a transfer takes place; -1: it fails
ssize_t allowed(const char* name, Act act, int file, size_t size) {
  if (!watches(file)) return static_cast<ssize_t>(size);
  const Verdict what = verdict(name, act, path_of(file));
  if (what == Verdict::Fail) return -1;
  return static_cast<ssize_t>(what == Verdict::Half && size > 1 ? size / 2 : size);
}

bool stops(const char* name, Act act, int file) { return allowed(name, act, file, 0) < 0; }

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened("open", AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened("open", AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened("openat", folder, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) { return stream("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return stream("fopen", path, mode); }

ssize_t write(int file, const void* bytes, size_t size) {
  const ssize_t room = allowed("write", Act::Write, file, size);
  return room < 0
             ? -1
             : real<ssize_t (*)(int, const void*, size_t)>("write")(file, bytes, static_cast<size_t>(room));
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  const ssize_t room = allowed("pwrite", Act::Write, file, size);
  return room < 0 ? -1
                  : real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(
                        file, bytes, static_cast<size_t>(room), at);
}

// of several buffers, half is the first one
ssize_t writev(int file, const iovec* buffers, int count) {
  const ssize_t room = allowed("writev", Act::Write, file, static_cast<size_t>(count));
  return room < 0
             ? -1
             : real<ssize_t (*)(int, const iovec*, int)>("writev")(file, buffers, static_cast<int>(room));
}

size_t fwrite(const void* bytes, size_t size, size_t count, FILE* file) {
  const ssize_t room = allowed("fwrite", Act::Write, fileno(file), count);
  return room < 0 ? 0
                  : real<size_t (*)(const void*, size_t, size_t, FILE*)>("fwrite")(bytes, size, count, file);
}

ssize_t read(int file, void* bytes, size_t size) {
  const ssize_t room = allowed("read", Act::Read, file, size);
  return room < 0 ? -1
                  : real<ssize_t (*)(int, void*, size_t)>("read")(file, bytes, static_cast<size_t>(room));
}

int fsync(int file) { return stops("fsync", Act::Write, file) ? -1 : real<int (*)(int)>("fsync")(file); }
int fdatasync(int file) {
  return stops("fdatasync", Act::Write, file) ? -1 : real<int (*)(int)>("fdatasync")(file);
}
int ftruncate(int file, off_t size) {
  return stops("ftruncate", Act::Write, file) ? -1 : real<int (*)(int, off_t)>("ftruncate")(file, size);
}

// a file is closed even if that fails
int close(int file) {
  const bool failed = watches(file) && stops("close", Act::Close, file);
  const int error = errno;
  watch(file, false);
  const int status = real<int (*)(int)>("close")(file);
  if (failed) errno = error;
  return failed ? -1 : status;
}

int fclose(FILE* file) {
  const int descriptor = fileno(file);
  const bool failed = watches(descriptor) && stops("fclose", Act::Close, descriptor);
  const int error = errno;
  watch(descriptor, false);
  const int status = real<int (*)(FILE*)>("fclose")(file);
  if (failed) errno = error;
  return failed ? EOF : status;
}

int rename(const char* from, const char* to) {
  return fails("rename", Act::Create, absolute(AT_FDCWD, to))
             ? -1
             : real<int (*)(const char*, const char*)>("rename")(from, to);
}

int link(const char* from, const char* to) {
  return fails("link", Act::Create, absolute(AT_FDCWD, to))
             ? -1
             : real<int (*)(const char*, const char*)>("link")(from, to);
}

int mkdir(const char* path, mode_t mode) {
  return fails("mkdir", Act::Create, absolute(AT_FDCWD, path))
             ? -1
             : real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

int unlink(const char* path) {
  return fails("unlink", Act::Change, absolute(AT_FDCWD, path)) ? -1
                                                                : real<int (*)(const char*)>("unlink")(path);
}

int unlinkat(int folder, const char* path, int flags) {
  return fails("unlinkat", Act::Change, absolute(folder, path))
             ? -1
             : real<int (*)(int, const char*, int)>("unlinkat")(folder, path, flags);
}

int remove(const char* path) {
  return fails("remove", Act::Change, absolute(AT_FDCWD, path)) ? -1
                                                                : real<int (*)(const char*)>("remove")(path);
}

int truncate(const char* path, off_t size) {
  return fails("truncate", Act::Change, absolute(AT_FDCWD, path))
             ? -1
             : real<int (*)(const char*, off_t)>("truncate")(path, size);
}
}
