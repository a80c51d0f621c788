#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "fastweights/environment.h"
#include "figures.h"

extern char** environ;

namespace fastweights::bench {
namespace {

struct Process {
  pid_t id;
  int output;  // where what it prints can be read
};

Process start(std::vector<std::string> arguments) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) throw std::runtime_error("[figures] cannot open a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  pid_t id = 0;
  const int error = posix_spawn(&id, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) throw std::runtime_error("[figures] cannot start a process");
  return {id, ends[0]};
}

std::string text_of(int output) {
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t size; (size = read(output, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<size_t>(size));
  close(output);
  return text;
}

// the status of a process that has ended, or was ended by us
int wait_for(pid_t id, int limit_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit_seconds);
  int status = 0;
  while (waitpid(id, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(id, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return status;
}

}  // namespace

Json measure_apart(const std::string& figure, const Json& point, int limit_seconds) {
  const Process process = start(
      {"figures", "--threads", std::to_string(environment().threads), "--measure", figure, point.dump()});
  // one line fits into the pipe, so nobody waits for us to read it
  const int status = wait_for(process.id, limit_seconds);
  const std::string text = text_of(process.output);
  Json answer = point;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    answer = Json::parse(text);
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    answer["failed"] = "took longer than " + std::to_string(limit_seconds) + " s, or too much memory";
  } else {
    answer["failed"] = "ended with status " + std::to_string(status);
  }
  Json line = {{"figure", figure}};
  line.update(answer);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  return answer;
}

}  // namespace fastweights::bench
