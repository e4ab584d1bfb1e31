/* Owns the door of the worker channel: accepting sockets, and judging the upgrade request before it becomes a session. Whoever
 * is refused learns why in the envelope of schema/http.md. */
#include "edge/channel_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/wire_http.h"

/* ---- accepting ---- */

static void read_address(const struct sockaddr_storage *from, uint8_t address[16]) {
  static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
  memset(address, 0, 16);
  if (from->ss_family == AF_INET6) memcpy(address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
  if (from->ss_family != AF_INET) return;
  memcpy(address, mapped, sizeof mapped);
  memcpy(address + sizeof mapped, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
}

/* Whether this address has as many sockets here as it may. */
static bool is_crowded(const struct channel *channel, const uint8_t address[16]) {
  static const uint8_t local[16];
  uint32_t limit = channel->edge->address_connections_max, count = 0;
  if (limit == 0 || channel->peer_count < limit || memcmp(address, local, sizeof local) == 0) return false;
  for (uint32_t i = 0; i < channel->peer_count; i++) count += memcmp(channel->peers[i].address, address, 16) == 0;
  return count >= limit;
}

void channel_forget_peer(struct channel *channel, const struct lws *wsi) {
  for (uint32_t i = 0; i < channel->peer_count; i++) {
    if (channel->peers[i].wsi != wsi) continue;
    channel->peers[i] = channel->peers[--channel->peer_count];
    return;
  }
}

static void adopt(struct channel *channel, int fd, const uint8_t address[16]) {
  static const int one = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct lws *wsi = lws_adopt_socket_vhost(channel->vhost, fd);
  if (wsi == NULL) return;
  must(channel->peer_count < sizeof channel->peers / sizeof channel->peers[0]);
  struct channel_peer *peer = &channel->peers[channel->peer_count++];
  peer->wsi = wsi;
  memcpy(peer->address, address, sizeof peer->address);
}

void channel_accept(struct channel *channel) {
  for (int i = 0; i < worker_accepts_max && channel->listener != NULL; i++) {
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof from;
    uint8_t address[16];
    int fd = accept4(lws_get_socket_fd(channel->listener), (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        /* The socket stays readable: looking at it again at once would be a busy loop. */
        channel->accept_paused = true;
        (void)lws_rx_flow_control(channel->listener, 0);
      }
      return;
    }
    read_address(&from, address);
    if (channel->sockets >= worker_connections_max + worker_sockets_spare_max || is_crowded(channel, address)) (void)close(fd);
    else adopt(channel, fd, address);
  }
}

/* ---- answering without an upgrade ---- */

static void make_request_id(struct channel *channel, char out[request_id_chars + 1]) {
  struct id id;
  (void)lws_get_random(channel->context, id.bytes, sizeof id.bytes);
  id_format(&id, out);
  out[request_id_chars] = '\0';
}

static const char *reason_phrase(unsigned code) {
  static const struct {
    unsigned code;
    const char *phrase;
  } phrases[] = {{400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {413, "Content Too Large"},
                 {431, "Request Header Fields Too Large"},
                 {426, "Upgrade Required"},
                 {429, "Too Many Requests"},
                 {503, "Service Unavailable"}};
  for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
    if (phrases[i].code == code) return phrases[i].phrase;
  return "Refused";
}

/* Writes the refusal, with a status line of our own: the library has not noted the version of a request to upgrade yet, and
 * would answer as HTTP/1.0. The caller closes. */
static void answer_fault(struct channel *channel, struct lws *wsi, const struct fault *fault) {
  unsigned code = status_http(fault->status);
  char request_id[request_id_chars + 1];
  make_request_id(channel, request_id);
  cleanup(buffer_clear) struct buffer body;
  cleanup(buffer_clear) struct buffer text;
  buffer_init(&body, worker_refusal_bytes_max);
  wire_error_write(&body, request_id, fault);

  buffer_init(&text, session_pad_bytes + 2 * worker_refusal_bytes_max);
  static const uint8_t pad[session_pad_bytes];
  buffer_append(&text, pad, sizeof pad);
  buffer_append_format(&text, "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", code,
                       reason_phrase(code), body.size);
  buffer_append_format(&text, "X-Request-Id: %s\r\nConnection: close\r\n", request_id);
  if (code == 401) buffer_append_text(&text, "WWW-Authenticate: Bearer\r\n");
  if (code == 405) buffer_append_text(&text, "Allow: GET\r\n");
  if (code == 426)
    buffer_append_text(&text, "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: orbit.worker.v1\r\n");
  if (code == 429 || code == 503) buffer_append_text(&text, "Retry-After: 1\r\n");
  buffer_append_text(&text, "\r\n");
  buffer_append_bytes(&text, buffer_bytes(&body));
  if (body.failed || text.failed) return;
  (void)lws_write(wsi, text.data + session_pad_bytes, text.size - session_pad_bytes, LWS_WRITE_HTTP_FINAL);
}

/* What the library refuses by itself, because it cannot read it, it would answer with HTML. This stands in for the function
 * that does so (the dynamic linker takes the program's definition first, as in http_fault.c; else clients see the library's own
 * text). */
int lws_return_http_status(struct lws *wsi, unsigned int code, const char *html_body) {
  struct channel *channel = channel_current();
  struct fault fault;
  (void)html_body;
  if (channel == NULL) return 1;
  enum status status = code == 413   ? STATUS_PAYLOAD_TOO_LARGE
                       : code == 431 ? STATUS_HEADERS_TOO_LARGE
                       : code >= 500 ? STATUS_UNAVAILABLE
                                     : STATUS_INVALID_ARGUMENT;
  (void)fault_set(&fault, status, NULL, "%s",
                  status == STATUS_INVALID_ARGUMENT ? "the request is not valid HTTP/1.1" : status_text(status));
  answer_fault(channel, wsi, &fault);
  return 0;
}

/* ---- judging ---- */

/* A header's value; "" when it is absent, NULL when it does not fit. */
static const char *header_text(struct lws *wsi, enum lws_token_indexes token, char *out, size_t size) {
  out[0] = '\0';
  if (lws_hdr_total_length(wsi, token) == 0) return out;
  return lws_hdr_copy(wsi, out, (int)size, token) >= 0 ? out : NULL;
}

/* Whether the comma-separated list names the word. */
static bool list_has(const char *list, const char *word, bool any_case) {
  size_t length = strlen(word);
  while (*list != '\0') {
    list += strspn(list, " \t,");
    size_t item = strcspn(list, ",");
    size_t end = item;
    while (end > 0 && (list[end - 1] == ' ' || list[end - 1] == '\t')) end--;
    if (end == length && (any_case ? strncasecmp(list, word, length) : strncmp(list, word, length)) == 0) return true;
    list += item;
  }
  return false;
}

/* The path: the one that there is, and how it may be asked for. */
static enum status judge_target(struct lws *wsi, struct fault *fault) {
  char path[64];
  static const enum lws_token_indexes others[] = {WSI_TOKEN_POST_URI,  WSI_TOKEN_OPTIONS_URI, WSI_TOKEN_PUT_URI,
                                                  WSI_TOKEN_PATCH_URI, WSI_TOKEN_DELETE_URI,  WSI_TOKEN_HEAD_URI,
                                                  WSI_TOKEN_CONNECT};
  enum lws_token_indexes method = WSI_TOKEN_GET_URI;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (lws_hdr_total_length(wsi, others[i]) > 0) method = others[i];
  const char *text = header_text(wsi, method, path, sizeof path);
  if (text == NULL || strcmp(text, "/v1/worker") != 0)
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "this address serves GET /v1/worker alone");
  if (method != WSI_TOKEN_GET_URI) return fault_set(fault, STATUS_METHOD_NOT_ALLOWED, NULL, "a worker connects with GET");
  if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS) > 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, NULL, "the target takes no parameters");
  return STATUS_OK;
}

static enum status judge_handshake(struct lws *wsi, const char *upgrade, struct fault *fault) {
  char text[256];
  if (upgrade == NULL || strcasecmp(upgrade, "websocket") != 0)
    return fault_set(fault, STATUS_UPGRADE_REQUIRED, "Upgrade", "workers connect by WebSocket: Upgrade: websocket is missing");
  const char *value = header_text(wsi, WSI_TOKEN_VERSION, text, sizeof text);
  if (value == NULL || strcmp(value, "13") != 0)
    return fault_set(fault, STATUS_UPGRADE_REQUIRED, "Sec-WebSocket-Version", "the WebSocket version must be 13");
  value = header_text(wsi, WSI_TOKEN_CONNECTION, text, sizeof text);
  if (value == NULL || !list_has(value, "upgrade", true))
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "Connection", "Connection: Upgrade is missing");
  value = header_text(wsi, WSI_TOKEN_PROTOCOL, text, sizeof text);
  if (value == NULL || !list_has(value, "orbit.worker.v1", false))
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "Sec-WebSocket-Protocol", "the subprotocol must be orbit.worker.v1");
  if (lws_hdr_total_length(wsi, WSI_TOKEN_HOST) == 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "Host", "the header Host is missing");
  uint8_t nonce[32];
  value = header_text(wsi, WSI_TOKEN_KEY, text, sizeof text);
  if (value == NULL || strlen(value) != 24 || lws_b64_decode_string(value, (char *)nonce, sizeof nonce) != 16)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "Sec-WebSocket-Key", "the key must be 16 bytes in Base64");
  return STATUS_OK;
}

static enum status judge_readiness(struct channel *channel, struct fault *fault) {
  int phase = atomic_load_explicit(&channel->edge->phase, memory_order_acquire);
  bool leaving = phase == EDGE_DRAINING || atomic_load(&channel->going_away) || atomic_load(&channel->stopping);
  const char *why = NULL;
  if (leaving) why = "Orbit is shutting down";
  else if (phase != EDGE_READY) why = "Orbit is replaying its log and not ready yet";
  else if (atomic_load(&channel->open) >= worker_connections_max) why = "as many workers are connected as there may be";
  if (why == NULL) return STATUS_OK;
  (void)fault_set(fault, STATUS_UNAVAILABLE, NULL, "%s", why);
  fault->retry_after_ms = 1000;
  return STATUS_UNAVAILABLE;
}

static enum status judge_credential(struct channel *channel, struct lws *wsi, struct principal *ret_who, struct fault *fault) {
  char text[256];
  bool given = lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_AUTHORIZATION) > 0;
  const char *value = header_text(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text);
  if (value == NULL) return fault_set(fault, STATUS_UNAUTHENTICATED, "Authorization", "the token is not valid");
  enum status status = edge_authenticate(channel->edge, given ? value : NULL, ret_who, fault);
  explicit_bzero(text, sizeof text);
  return status == STATUS_OK ? edge_permit(ret_who, PERMISSION_TASKS_CONSUME, fault) : status;
}

static enum status judge_crowd(struct channel *channel, const struct principal *who, struct fault *fault) {
  uint32_t limit = channel->edge->credential_workers_max, count = 0;
  if (limit == 0 || atomic_load(&channel->open) < limit) return STATUS_OK;
  for (uint32_t slot = 0; slot < channel_slots_max; slot++) {
    const struct session *session = channel->slots[slot];
    count += session != NULL && session->socket != NULL && id_equal(&session->who.credential_id, &who->credential_id);
  }
  if (count < limit) return STATUS_OK;
  (void)fault_set(fault, STATUS_RATE_LIMITED, NULL, "this credential has as many workers connected as it may: %u", limit);
  fault->retry_after_ms = crowded_retry_ms;
  atomic_fetch_add_explicit(&channel->edge->crowded_workers, 1, memory_order_relaxed);
  return STATUS_RATE_LIMITED;
}

int channel_judge_upgrade(struct channel *channel, struct lws *wsi, const char *upgrade) {
  struct fault fault = {.status = STATUS_OK};
  struct principal who;
  enum status status = judge_target(wsi, &fault);
  if (status == STATUS_OK) status = judge_handshake(wsi, upgrade, &fault);
  if (status == STATUS_OK) status = judge_readiness(channel, &fault);
  if (status == STATUS_OK) status = judge_credential(channel, wsi, &who, &fault);
  if (status == STATUS_OK) status = judge_crowd(channel, &who, &fault);
  if (status == STATUS_OK && channel_session_new(channel, &who, wsi) == NULL)
    status = fault_set(&fault, STATUS_UNAVAILABLE, NULL, "as many workers are connected as there may be");
  if (status == STATUS_OK) return 0;
  fault.status = status;
  answer_fault(channel, wsi, &fault);
  return -1;
}

int channel_refuse_request(struct channel *channel, struct lws *wsi) {
  struct fault fault = {.status = STATUS_OK};
  enum status status = judge_target(wsi, &fault);
  if (status == STATUS_OK) status = judge_handshake(wsi, NULL, &fault);
  fault.status = status;
  answer_fault(channel, wsi, &fault);
  return -1;
}
