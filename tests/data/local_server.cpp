#include "data/local_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace fastweights::testing {
namespace {

// the value of a header of a request, or ""
std::string header(const std::string& request, const std::string& name) {
  const size_t found = request.find("\r\n" + name + ": ");
  if (found == std::string::npos) return {};
  const size_t begin = found + name.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

void send_all(int connection, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

}  // namespace

LocalServer::LocalServer() {
  // whatever proxies the environment names
  setenv("no_proxy", "127.0.0.1", 1);
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 8) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no local server can be started");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

LocalServer::~LocalServer() {
  stop_ = true;
  ::shutdown(socket_, SHUT_RDWR);
  thread_.join();
  ::close(socket_);
}

void LocalServer::set(const std::string& name, const Page& page) {
  const std::lock_guard lock(mutex_);
  pages_[name] = page;
}

std::string LocalServer::address(const std::string& name) const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/" + name;
}

std::vector<std::string> LocalServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void LocalServer::serve() {
  while (!stop_) {
    const int connection = ::accept(socket_, nullptr, nullptr);
    if (connection < 0) continue;
    answer(connection);
    ::close(connection);
  }
}

void LocalServer::answer(int connection) {
  std::string request;
  char piece[1024];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = ::recv(connection, piece, sizeof piece, 0);
    if (count <= 0) return;
    request.append(piece, static_cast<size_t>(count));
  }
  const size_t begin = request.find('/') + 1;
  const std::string name = request.substr(begin, request.find(' ', begin) - begin),
                    range = header(request, "Range");
  const std::lock_guard lock(mutex_);
  requests_.push_back(name + (range.empty() ? "" : " from " + range.substr(6, range.size() - 7)));
  const auto found = pages_.find(name);
  if (found == pages_.end())
    return send_all(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  Page& page = found->second;
  if (!page.location.empty())
    return send_all(connection,
                    "HTTP/1.1 302 Found\r\nLocation: " + page.location + "\r\nContent-Length: 0\r\n\r\n");
  const bool part = !range.empty() && header(request, "If-Range") == page.tag;
  const size_t first = part ? std::strtoul(range.c_str() + 6, nullptr, 10) : 0;
  if (first >= page.bytes.size() && part)
    return send_all(connection, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
  const std::string size = std::to_string(page.bytes.size());
  const std::string range_sent = !page.range.empty() ? page.range
                                                     : "bytes " + std::to_string(first) + "-" +
                                                           std::to_string(page.bytes.size() - 1) + "/" + size;
  std::string head =
      part ? "HTTP/1.1 206 Partial Content\r\nContent-Range: " + range_sent + "\r\n" : "HTTP/1.1 200 OK\r\n";
  if (!page.tag.empty()) head += "ETag: " + page.tag + "\r\n";
  if (!page.without_length) head += "Content-Length: " + std::to_string(page.bytes.size() - first) + "\r\n";
  head += "Connection: close\r\n\r\n";
  send_all(connection, head + page.bytes.substr(first, page.cut_after));
  page.cut_after = ~0ull;
}

}  // namespace fastweights::testing
