/* Owns how listening sockets come to be. */
#include "orbitd/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/limits.h"

/* Splits at the last colon; brackets around an IPv6 address are taken off. */
static bool split(const char *address, char host[host_bytes_max], const char **ret_port) {
  const char *colon = strrchr(address, ':');
  if (colon == NULL || colon == address || colon[1] == 0) return false;
  size_t size = (size_t)(colon - address);
  if (address[0] == '[') {
    if (size < 3 || address[size - 1] != ']') return false;
    address++;
    size -= 2;
  }
  if (size >= host_bytes_max) return false;
  memcpy(host, address, size);
  host[size] = 0;
  *ret_port = colon + 1;
  return true;
}

static bool is_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int open_socket(const struct addrinfo *info) {
  int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
  if (fd < 0) return -1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 && bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
      listen(fd, listen_backlog_max) == 0)
    return fd;
  int error = errno;
  (void)close(fd);
  errno = error;
  return -1;
}

/* getaddrinfo would take 65536 for 0. */
static bool is_port(const char *text) {
  size_t digits = strspn(text, "0123456789");
  return text[digits] == 0 && digits >= 1 && digits <= 5 && strtoul(text, NULL, 10) <= UINT16_MAX;
}

static enum status refuse_plain_text(const char *name, const char *address, struct fault *fault) {
  return fault_set(
      fault, STATUS_INVALID_ARGUMENT, name,
      "--%s: %.128s is not loopback and there is no TLS: give --tls-cert and --tls-key, put a TLS proxy in front, or "
      "say --allow-plain-text",
      name, address);
}

/* The address behind the text, for freeaddrinfo. */
static enum status resolve(const char *name, const char *address, bool allow_beyond_loopback, struct addrinfo **ret_info,
                           struct fault *fault) {
  char host[host_bytes_max];
  const char *port;
  if (!split(address, host, &port))
    return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "--%s: \"%.128s\" is not ADDR:PORT", name, address);
  struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *info;
  if (strcmp(host, "localhost") == 0) (void)snprintf(host, sizeof host, "127.0.0.1");
  if (!is_port(port) || getaddrinfo(host, port, &hints, &info) != 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, name, "--%s: \"%.128s\" is not a numeric address and port", name, address);
  if (!allow_beyond_loopback && !is_loopback(info->ai_addr)) {
    freeaddrinfo(info);
    return refuse_plain_text(name, address, fault);
  }
  *ret_info = info;
  return STATUS_OK;
}

enum status socket_judge_activated(const char *name, int fd, bool allow_beyond_loopback, struct fault *fault) {
  struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
  socklen_t length = sizeof address;
  char text[160];
  if (allow_beyond_loopback || getsockname(fd, (struct sockaddr *)&address, &length) != 0 || address.ss_family == AF_UNIX ||
      is_loopback((const struct sockaddr *)&address))
    return STATUS_OK;
  socket_address(fd, text, sizeof text);
  return refuse_plain_text(name, text, fault);
}

enum status socket_judge(const char *name, const char *address, bool allow_beyond_loopback, struct fault *fault) {
  struct addrinfo *info;
  enum status status = resolve(name, address, allow_beyond_loopback, &info, fault);
  if (status == STATUS_OK) freeaddrinfo(info);
  return status;
}

enum status socket_listen(const char *name, const char *address, bool allow_beyond_loopback, int *ret_fd, struct fault *fault) {
  struct addrinfo *info;
  enum status status = resolve(name, address, allow_beyond_loopback, &info, fault);
  if (status != STATUS_OK) return status;
  int fd = open_socket(info);
  if (fd < 0)
    status = fault_set(fault, STATUS_IO_ERROR, name, "--%s: cannot listen on %.128s: %s", name, address, strerror(errno));
  freeaddrinfo(info);
  if (status == STATUS_OK) *ret_fd = fd;
  return status;
}

void socket_address(int fd, char *out, size_t size) {
  struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
  socklen_t length = sizeof address;
  char host[host_bytes_max], port[16];
  if (getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
      getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) !=
          0) {
    (void)snprintf(out, size, "unknown");
    return;
  }
  (void)snprintf(out, size, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

void socket_activated(int *ret_http_fd, int *ret_worker_fd) {
  char **names = NULL;
  int count = sd_listen_fds_with_names(1, &names);
  *ret_http_fd = *ret_worker_fd = -1;
  for (int i = 0; i < count; i++) {
    int fd = SD_LISTEN_FDS_START + i;
    bool worker = names != NULL && names[i] != NULL && strcmp(names[i], "worker") == 0;
    int *target = worker || *ret_http_fd >= 0 ? ret_worker_fd : ret_http_fd;
    if (*target >= 0) continue;
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    *target = fd;
  }
  for (int i = 0; i < count && names != NULL; i++) free(names[i]);
  free(names);
}
