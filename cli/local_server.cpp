#include "local_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "base/error.h"

namespace fastweights::cli {
namespace {

constexpr size_t kMostClients = 64, kLongestRequest = 16 * 1024;
// seconds for a request to arrive, and for a piece of an answer to leave
constexpr double kPatience = 10;
constexpr int kSendPatience = 5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Internal Server Error";
  }
}

Answer refusal(int status) { return {.status = status, .text = message(status, " ", reason(status), "\n")}; }

// the path without percent-encoding and query; absent if it is malformed
std::optional<std::string> decoded(const std::string& target) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = static_cast<char>(c | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
  };
  std::string path;
  for (size_t i = 0; i < target.size() && target[i] != '?' && target[i] != '#'; ++i) {
    if (target[i] != '%') {
      path += target[i];
      continue;
    }
    const int high = i + 2 < target.size() ? digit(target[i + 1]) : -1,
              low = high < 0 ? -1 : digit(target[i + 2]);
    if (low < 0 || 16 * high + low == 0) return std::nullopt;
    path += static_cast<char>(16 * high + low);
    i += 2;
  }
  return path.empty() || path[0] != '/' ? std::nullopt : std::optional(path);
}

// the value of a header, without its spaces
std::string header(const std::string& request, const std::string& name) {
  size_t from = request.find("\r\n");
  while (from != std::string::npos && from + 2 < request.size()) {
    const size_t start = from + 2, end = request.find("\r\n", start), colon = request.find(':', start);
    if (end == std::string::npos || end == start) break;
    if (colon < end && colon - start == name.size() &&
        strncasecmp(request.c_str() + start, name.c_str(), name.size()) == 0) {
      const size_t first = request.find_first_not_of(" \t", colon + 1);
      return first >= end ? "" : request.substr(first, end - first);
    }
    from = end;
  }
  return "";
}

// a page of another site that names this machine's address must not read what is here
bool is_local_host(const std::string& host) {
  const std::string name = host.substr(0, host.find(':'));
  return name == "127.0.0.1" || name == "localhost";
}

Answer answer_to(const std::string& request, const std::function<Answer(const std::string&)>& answer) {
  const std::string line = request.substr(0, request.find("\r\n"));
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string::npos || first == last || line.compare(last + 1, 7, "HTTP/1.") != 0)
    return refusal(400);
  if (line.substr(0, first) != "GET") return refusal(405);
  if (!is_local_host(header(request, "Host"))) return refusal(403);
  const std::optional<std::string> path = decoded(line.substr(first + 1, last - first - 1));
  return path ? answer(*path) : refusal(400);
}

bool send_all(int socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

// -1 unless it is a regular file that is no link
int open_file(const std::string& path, off_t& size) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat found = {};
  if (file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode)) {
    size = found.st_size;
    return file;
  }
  if (file >= 0) close(file);
  return -1;
}

void send_file(int socket, int file, off_t size) {
  std::array<char, 64 * 1024> piece = {};
  for (off_t left = size; left > 0;) {
    const ssize_t count =
        ::read(file, piece.data(), std::min<size_t>(piece.size(), static_cast<size_t>(left)));
    if (count <= 0 || !send_all(socket, piece.data(), static_cast<size_t>(count))) return;
    left -= count;
  }
}

void send_answer(int socket, Answer answer) {
  off_t size = 0;
  const int file = answer.file.empty() ? -1 : open_file(answer.file, size);
  if (!answer.file.empty() && file < 0) answer = refusal(404);
  if (file < 0) size = static_cast<off_t>(answer.text.size());
  std::string head =
      message("HTTP/1.1 ", answer.status, " ", reason(answer.status), "\r\nContent-Type: ", answer.type,
              "\r\nContent-Length: ", size,
              "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff"
              "\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n");
  if (answer.status == 405) head += "Allow: GET\r\n";
  if (!answer.policy.empty()) head += "Content-Security-Policy: " + answer.policy + "\r\n";
  head += "\r\n";
  if (send_all(socket, head.data(), head.size())) {
    if (file >= 0) {
      send_file(socket, file, size);
    } else {
      send_all(socket, answer.text.data(), answer.text.size());
    }
  }
  if (file >= 0) close(file);
}

}  // namespace

LocalServer::LocalServer(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int yes = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (socket_ >= 0) setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listens = socket_ >= 0 && bind(socket_, plain, length) == 0 && listen(socket_, 16) == 0 &&
                       getsockname(socket_, plain, &length) == 0;
  if (!listens) {
    const std::string why = std::strerror(errno);
    if (socket_ >= 0) close(socket_);
    throw std::runtime_error(
        message("port ", port, " of 127.0.0.1 cannot be used: ", why, "; --port 0 takes a free one"));
  }
  port_ = ntohs(address.sin_port);
}

LocalServer::~LocalServer() {
  for (const Client& client : clients_) close(client.socket);
  close(socket_);
}

void LocalServer::accept_client() {
  const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const timeval patience = {kSendPatience, 0};
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  clients_.push_back({.socket = client, .deadline = now() + kPatience});
}

bool LocalServer::read_from(Client& client, const std::function<Answer(const std::string&)>& answer) const {
  std::array<char, 4096> piece = {};
  const ssize_t count = recv(client.socket, piece.data(), piece.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) return true;
  client.request.append(piece.data(), static_cast<size_t>(count));
  if (client.request.find("\r\n\r\n") != std::string::npos) {
    send_answer(client.socket, answer_to(client.request, answer));
    return true;
  }
  if (client.request.size() <= kLongestRequest) return false;
  send_answer(client.socket, refusal(431));
  return true;
}

void LocalServer::serve(const std::function<Answer(const std::string&)>& answer,
                        const std::function<bool()>& stop) {
  while (!stop()) {
    std::vector<pollfd> waiting;
    // with many clients others wait in the queue of the system
    waiting.push_back({clients_.size() < kMostClients ? socket_ : -1, POLLIN, 0});
    for (const Client& client : clients_) waiting.push_back({client.socket, POLLIN, 0});
    constexpr int kMilliseconds = 250;
    if (poll(waiting.data(), waiting.size(), kMilliseconds) < 0) continue;
    std::vector<Client> rest;
    for (size_t i = 0; i < clients_.size(); ++i) {
      const bool ready = waiting[i + 1].revents != 0;
      const bool done = (ready && read_from(clients_[i], answer)) || now() > clients_[i].deadline;
      if (done) {
        shutdown(clients_[i].socket, SHUT_WR);
        close(clients_[i].socket);
      } else {
        rest.push_back(std::move(clients_[i]));
      }
    }
    clients_ = std::move(rest);
    if (waiting[0].revents != 0) accept_client();
  }
}

}  // namespace fastweights::cli
