#pragma once

#include <functional>
#include <string>
#include <vector>

/// A server of pages for this machine only: GET on 127.0.0.1, one thread, bounded memory.

namespace fastweights::cli {

struct Answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string text = {};
  std::string file = {};    ///< sent instead of the text, if it is a regular file
  std::string policy = {};  ///< Content-Security-Policy
};

class LocalServer {
 public:
  /// Listens on a port; 0: any free one.
  explicit LocalServer(int port);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  int port() const { return port_; }

  /// Answers requests, by their path without percent-encoding, until `stop` is true.
  void serve(const std::function<Answer(const std::string& path)>& answer, const std::function<bool()>& stop);

 private:
  struct Client {
    int socket = -1;
    std::string request = {};
    double deadline = 0;
  };

  void accept_client();
  /// Whether the client is done.
  bool read_from(Client& client, const std::function<Answer(const std::string& path)>& answer) const;

  int socket_ = -1, port_ = 0;
  std::vector<Client> clients_;
};

}  // namespace fastweights::cli
