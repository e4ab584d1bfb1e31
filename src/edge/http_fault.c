/* Owns the answers that libmicrohttpd gives without asking: a request line or headers that it cannot read, or that do not fit
 * its memory. It has no hook for them and its bodies are HTML, so this file stands in for the one library function that makes
 * them (the dynamic linker takes the program's definition first) and puts them into Orbit's envelope. Where that is not so,
 * for instance in a static build, clients see the library's own text; nothing else changes. */
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/guard.h"
#include "codec/wire_http.h"
#include "edge/http_thread.h"

/* The status of such a refusal is told by the library's log line alone. */
void http_fault_log(void *context, const char *format, va_list arguments) {
  static const char refusal[] = "Error processing request (HTTP response code is %u";
  struct http_thread *thread = context;
  if (strncmp(format, refusal, sizeof refusal - 1) == 0) thread->library_status = va_arg(arguments, unsigned);
}

static enum status fault_status(unsigned http) {
  for (int status = STATUS_INVALID_ARGUMENT; status <= STATUS_UNAVAILABLE; status++)
    if (status_http((enum status)status) == http) return (enum status)status;
  return http < 500 || http == MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED ? STATUS_INVALID_ARGUMENT : STATUS_INTERNAL;
}

/* The envelope of such a refusal. */
static void fault_write(struct http_thread *thread, char request_id[request_id_chars + 1], struct buffer *out) {
  struct fault fault;
  enum status status = fault_status(thread->library_status);
  request_pool_next_id(&thread->pool, request_id);
  (void)fault_set(&fault, status, NULL, "%s",
                  status == STATUS_INVALID_ARGUMENT ? "the request is not valid HTTP/1.1" : status_text(status));
  wire_error_write(out, request_id, &fault);
}

static struct MHD_Response *fault_response(struct http_thread *thread) {
  char request_id[request_id_chars + 1];
  struct buffer out;
  buffer_init(&out, http_kept_bytes_max);
  fault_write(thread, request_id, &out);
  struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(out.size, out.data, free, out.data);
  if (response == NULL) {
    buffer_clear(&out);
    return NULL;
  }
  (void)MHD_add_response_header(response, "Content-Type", "application/json");
  (void)MHD_add_response_header(response, "X-Request-Id", request_id);
  return response;
}

/* The connection whose headers were just found wrong: all of them are there, and yet the request was not shown to us. */
static struct http_connection *refused_connection(struct http_thread *thread) {
  struct http_connection *at = thread->moving.oldest;
  while (at != NULL && (!at->aware || at->request.phase != REQUEST_NEW ||
                        MHD_get_connection_info(at->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) == NULL))
    at = at->newer;
  return at;
}

/* Nothing was sent on the connection since its last answer, so it fits; and else the client sees it close. With TLS the bytes
 * go the library's way, through the session that it has made. */
static void connection_send(const struct http_connection *connection, struct bytes bytes) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  ssize_t sent;
  if (info != NULL && info->tls_session != NULL) sent = gnutls_record_send(info->tls_session, bytes.data, bytes.size);
  else sent = send(connection->fd, bytes.data, bytes.size, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}

/* A bad Content-Length makes the library (0.9.75) send the head of its answer twice. So the answer goes out here, and the
 * library is left to close the connection. */
static void fault_send(struct http_thread *thread) {
  struct http_connection *connection = refused_connection(thread);
  if (connection == NULL) return;
  char request_id[request_id_chars + 1];
  cleanup(buffer_clear) struct buffer body, all;
  buffer_init(&body, http_kept_bytes_max);
  buffer_init(&all, http_kept_bytes_max);
  unsigned http = thread->library_status;
  fault_write(thread, request_id, &body);
  buffer_append_format(&all,
                       "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/json\r\nX-Request-Id: %s\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       http, MHD_get_reason_phrase_for(http), request_id, body.size);
  buffer_append_bytes(&all, buffer_bytes(&body));
  connection_send(connection, buffer_bytes(&all));
  connection->refused_early = true;
}

struct MHD_Response *MHD_create_response_from_buffer(size_t size, void *buffer, enum MHD_ResponseMemoryMode mode) {
  struct http_thread *thread = http_thread_current();
  if (thread != NULL && thread->library_status != 0) {
    bool twice = memmem(buffer, size, "Content-Length", 14) != NULL;
    struct MHD_Response *fault = NULL;
    if (twice) fault_send(thread);
    else fault = fault_response(thread);
    thread->library_status = 0;
    return fault;
  }
  void *owned = mode == MHD_RESPMEM_MUST_FREE ? buffer : NULL;
  if (mode == MHD_RESPMEM_MUST_COPY && size > 0) buffer = owned = memcpy(guard_malloc(size), buffer, size);
  struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(size, buffer, free, owned);
  if (response == NULL && mode == MHD_RESPMEM_MUST_COPY) free(owned);
  return response;
}
