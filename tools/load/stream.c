/* Owns the sockets of the load programs. */
#include "load/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/guard.h"
#include "load/secure.h"

enum { read_bytes = 16 * 1024, stream_bytes_max = 16 * 1024 * 1024 };

enum status address_parse(struct bytes url, struct address *ret_address, struct fault *fault) {
  static const struct {
    const char *text;
    bool tls;
  } schemes[] = {{"http://", false}, {"ws://", false}, {"https://", true}, {"wss://", true}};
  struct bytes rest = {NULL, 0};
  struct address address = {.size = 0};
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    size_t length = strlen(schemes[i].text);
    if (url.size <= length || memcmp(url.data, schemes[i].text, length) != 0) continue;
    rest = bytes_of(url.data + length, url.size - length);
    address.tls = schemes[i].tls;
  }
  const uint8_t *slash = rest.size > 0 ? memchr(rest.data, '/', rest.size) : NULL;
  size_t size = slash != NULL ? (size_t)(slash - rest.data) : rest.size;
  if (size == 0 || size >= sizeof address.text)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "url", "\"%.*s\" is not http://host:port or https://host:port",
                     (int)(url.size & 255), (const char *)url.data);
  memcpy(address.text, rest.data, size);
  char host[sizeof address.text];
  memcpy(host, address.text, sizeof host);
  char *colon = strrchr(host, ':');
  const char *port = address.tls ? "443" : "80";
  if (colon != NULL && strchr(colon, ']') == NULL) {
    *colon = '\0';
    port = colon + 1;
  }
  char *name = host;
  size_t length = strlen(name);
  if (length > 2 && name[0] == '[' && name[length - 1] == ']') {
    name[length - 1] = '\0';
    name++;
  }
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
  int result = getaddrinfo(name, port, &hints, &found);
  if (result != 0) return fault_set(fault, STATUS_INVALID_ARGUMENT, "url", "%s: %s", address.text, gai_strerror(result));
  (void)snprintf(address.host, sizeof address.host, "%s", name);
  memcpy(&address.socket, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  freeaddrinfo(found);
  *ret_address = address;
  return STATUS_OK;
}

static void stream_ready(struct loop_source *source, uint32_t events);

void stream_init(struct stream *stream, struct loop *loop, void (*took)(struct stream *), void (*broke)(struct stream *)) {
  *stream = (struct stream){.source = {-1, stream_ready}, .loop = loop, .took = took, .broke = broke};
  buffer_init(&stream->in, stream_bytes_max);
  buffer_init(&stream->out, stream_bytes_max);
}

void stream_clear(struct stream *stream) {
  stream_close(stream);
  buffer_clear(&stream->in);
  buffer_clear(&stream->out);
}

bool stream_is_open(const struct stream *stream) { return stream->source.fd >= 0; }

bool stream_open(struct stream *stream, const struct address *address) {
  static const int one = 1;
  must(!stream_is_open(stream));
  int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, (const struct sockaddr *)&address->socket, address->size) != 0 && errno != EINPROGRESS) {
    (void)close(fd);
    return false;
  }
  if (address->tls && (stream->secure = secure_new(fd, address->host)) == NULL) {
    (void)close(fd);
    return false;
  }
  stream->shaking = address->tls;
  buffer_reset(&stream->in);
  buffer_reset(&stream->out);
  stream->in_used = stream->out_used = 0;
  stream->blocked = true;
  loop_add(stream->loop, &stream->source, fd, EPOLLIN | EPOLLOUT);
  return true;
}

void stream_close(struct stream *stream) {
  if (!stream_is_open(stream)) return;
  int fd = stream->source.fd;
  loop_remove(stream->loop, &stream->source);
  secure_free(stream->secure);
  stream->secure = NULL;
  (void)close(fd);
}

static void stream_break(struct stream *stream) {
  stream_close(stream);
  stream->broke(stream);
}

static void block(struct stream *stream, bool blocked) {
  if (stream->blocked == blocked) return;
  stream->blocked = blocked;
  loop_change(stream->loop, &stream->source, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Sends what the socket takes; the rest waits. An error shows again when the socket is read. */
static size_t send_some(struct stream *stream, const uint8_t *data, size_t size) {
  if (stream->secure != NULL) return secure_send(stream->secure, data, size);
  ssize_t sent = send(stream->source.fd, data, size, MSG_NOSIGNAL);
  return sent < 0 ? 0 : (size_t)sent;
}

void stream_write(struct stream *stream, const void *data, size_t size) {
  const uint8_t *at = data;
  if (!stream_is_open(stream)) return;
  if (!stream->blocked) {
    size_t sent = send_some(stream, at, size);
    at += sent;
    size -= sent;
  }
  if (size == 0) return;
  buffer_append(&stream->out, at, size);
  must(!stream->out.failed);
  block(stream, true);
}

static void flush(struct stream *stream) {
  if (stream->out.size > stream->out_used)
    stream->out_used += send_some(stream, stream->out.data + stream->out_used, stream->out.size - stream->out_used);
  if (stream->out_used < stream->out.size) return;
  buffer_reset(&stream->out);
  stream->out_used = 0;
  block(stream, false);
}

struct bytes stream_unread(const struct stream *stream) {
  return bytes_of(stream->in.data + stream->in_used, stream->in.size - stream->in_used);
}

void stream_consume(struct stream *stream, size_t size) {
  stream->in_used += size;
  must(stream->in_used <= stream->in.size);
}

static void compact(struct stream *stream) {
  if (stream->in_used == 0) return;
  size_t left = stream->in.size - stream->in_used;
  if (left > 0) memmove(stream->in.data, stream->in.data + stream->in_used, left);
  stream->in.size = left;
  stream->in_used = 0;
}

/* False: nothing can be sent or read yet, or never. */
static bool shake_hands(struct stream *stream) {
  enum secure_result result = secure_handshake(stream->secure);
  if (result == SECURE_BROKEN) {
    stream_break(stream);
    return false;
  }
  stream->shaking = result != SECURE_DONE;
  loop_change(stream->loop, &stream->source, result == SECURE_READS ? EPOLLIN : EPOLLIN | EPOLLOUT);
  return !stream->shaking;
}

static ssize_t receive_some(struct stream *stream, uint8_t *room) {
  if (stream->secure != NULL) return secure_receive(stream->secure, room, read_bytes);
  ssize_t got = recv(stream->source.fd, room, read_bytes, 0);
  return got < 0 && errno != EAGAIN && errno != EINTR ? 0 : got;
}

static void stream_ready(struct loop_source *source, uint32_t events) {
  struct stream *stream = (struct stream *)(void *)source; /* its first member */
  if (stream->shaking && !shake_hands(stream)) return;
  if ((events & EPOLLOUT) != 0 && (events & (EPOLLERR | EPOLLHUP)) == 0) flush(stream);
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0) return;
  compact(stream);
  uint8_t *room = buffer_reserve(&stream->in, read_bytes);
  must(room != NULL);
  ssize_t got = receive_some(stream, room);
  if (got < 0) return;
  if (got == 0) {
    stream_break(stream);
    return;
  }
  buffer_commit(&stream->in, (size_t)got);
  stream->took(stream);
}
