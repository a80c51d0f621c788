#include "fastweights/environment.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "environment/cuda_device.h"
#include "kernels/instruction_set.h"
#include "tensor/runtime.h"

namespace fastweights {
namespace {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// the BLAS library of LibTorch, by the files mapped into this process
std::string blas_library() {
  std::ifstream in("/proc/self/maps");
  std::string found = "unknown";
  for (std::string line; std::getline(in, line);) {
    const size_t start = line.find('/');
    if (start == std::string::npos) continue;
    const std::string path = line.substr(start);
    const bool open = path.find("openblas") != std::string::npos,
               mkl = path.find("libmkl") != std::string::npos;
    if (open || mkl) return path;
    if (path.find("libblas") != std::string::npos) found = path + " (slow; install libopenblas0-openmp)";
  }
  return found;
}

std::string instruction_set_in_use() {
  check_instruction_set();
  const std::string used = kernels::name(kernels::instruction_set());
  const char* requested = std::getenv("FASTWEIGHTS_ISA");
  if (!requested || used == requested) return used;
  return used + " (this processor does not have " + requested + ", which FASTWEIGHTS_ISA asks for)";
}

}  // namespace

std::string version() { return FASTWEIGHTS_VERSION; }

Environment environment() {
  return {
      .version = version(),
      .compiler = FASTWEIGHTS_COMPILER,
      .libtorch = libtorch_version(),
      .blas = blas_library(),
      .threads = thread_count(),
      .cores = static_cast<int>(std::thread::hardware_concurrency()),
      .processor = processor_name(),
      .instruction_set = instruction_set_in_use(),
      .backends = {{"reference", true, "compositions of LibTorch operations, float32 and float64"},
                   {"cpu", true, "fused kernels for " + instruction_set_in_use() + ", float32 and float64"},
                   cuda_backend()}};
}

void set_threads(int threads) {
  FW_CHECK(threads >= 0, "[set_threads] expected a number of threads, or 0 for all cores, got ", threads);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  FW_CHECK(threads <= 8 * cores, "[set_threads] ", threads, " threads are too many for ", cores, " cores");
  set_thread_count(threads > 0 ? threads : cores);
}

}  // namespace fastweights
