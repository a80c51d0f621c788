#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fastweights::testing {

/// Serves texts over HTTP on this machine, one connection at a time, with ranges.
class LocalServer {
 public:
  struct Page {
    std::string bytes = {};
    std::string tag = {};       ///< ETag; none, if empty
    size_t cut_after = ~0ull;   ///< the connection breaks once, after this number of bytes
    std::string location = {};  ///< redirects there
    std::string range = {};     ///< Content-Range instead of the true one
    bool without_length = false;
  };

  LocalServer();
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  void set(const std::string& name, const Page& page);
  std::string address(const std::string& name) const;
  /// What was asked for, as "name" or "name from 123".
  std::vector<std::string> requests() const;

 private:
  void serve();
  void answer(int connection);

  int socket_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Page> pages_;
  std::vector<std::string> requests_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace fastweights::testing
