/* Owns connections: the callbacks of libmicrohttpd, suspending and resuming, and the deadlines that the library does not keep.
 */
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/guard.h"
#include "edge/http_thread.h"

/* ---- Lists by age ---- */

static void age_remove(struct http_connection *connection) {
  struct age_list *list = connection->list;
  if (list == NULL) return;
  if (connection->older != NULL) connection->older->newer = connection->newer;
  else list->oldest = connection->newer;
  if (connection->newer != NULL) connection->newer->older = connection->older;
  else list->newest = connection->older;
  connection->older = connection->newer = NULL;
  connection->list = NULL;
}

void http_connection_move(struct http_connection *connection, struct age_list *list) {
  age_remove(connection);
  connection->list = list;
  connection->since_ms = connection->thread->now_ms;
  connection->older = list->newest;
  if (list->newest != NULL) list->newest->newer = connection;
  else list->oldest = connection;
  list->newest = connection;
}

/* ---- Waiting for the engine ---- */

/* Suspending a connection and resuming it costs three system calls: out of the library's epoll, into it again, and a look
 * whether there is anything to read. A few connections at a time, for a short while, are left as they are instead; the library
 * asks for their answer in every round, which is cheap as long as they are few. With TLS the library may keep bytes of its own
 * that only its own timer tells of, so none is held; nor are readers of the feed, who wait long. */
static bool may_hold(const struct http_connection *connection) {
  const struct http_thread *thread = connection->thread;
  if (connection->held) return thread->now_ms - connection->since_ms < http_held_ms_max;
  return thread->held_count < http_held_max && thread->shared->edge->tls == NULL && !request_is_feed(&connection->request);
}

static void let_hold_go(struct http_connection *connection) {
  if (!connection->held) return;
  connection->held = false;
  connection->thread->held_count--;
}

static void stand_by(struct http_connection *connection) {
  bool hold = may_hold(connection);
  if (hold && connection->held) return;
  if (!connection->held) http_connection_move(connection, &connection->thread->waiting);
  let_hold_go(connection);
  if (!hold) {
    MHD_suspend_connection(connection->connection);
    return;
  }
  connection->held = true;
  connection->thread->held_count++;
}

/* ---- Connections come and go ---- */

static struct http_connection *connection_take(struct http_thread *thread) {
  struct http_connection *connection = thread->free_connections;
  if (connection != NULL) {
    thread->free_connections = connection->newer;
    thread->free_connection_count--;
    connection->newer = NULL;
  } else {
    connection = guard_calloc(1, sizeof *connection);
    connection->thread = thread;
    request_init(&connection->request, &thread->pool);
  }
  connection->refused_early = connection->aware = false;
  thread->connection_count++;
  return connection;
}

static void connection_free(struct http_connection *connection) {
  request_clear(&connection->request);
  free(connection);
}

static void connection_put(struct http_connection *connection) {
  struct http_thread *thread = connection->thread;
  age_remove(connection);
  let_hold_go(connection);
  thread->connection_count--;
  request_reset(&connection->request);
  if (thread->free_connection_count == http_spare_connections_max) {
    connection_free(connection);
    return;
  }
  connection->newer = thread->free_connections;
  thread->free_connections = connection;
  thread->free_connection_count++;
}

void http_connection_free_all(struct http_thread *thread) {
  while (thread->free_connections != NULL) {
    struct http_connection *next = thread->free_connections->newer;
    connection_free(thread->free_connections);
    thread->free_connections = next;
  }
}

static struct http_connection *connection_of(struct MHD_Connection *mhd) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  must(info != NULL && info->socket_context != NULL);
  return info->socket_context;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
  struct http_thread *thread = context;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    struct http_connection *connection = connection_take(thread);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    connection->connection = mhd;
    connection->fd = info != NULL ? info->connect_fd : -1;
    *socket_context = connection;
    http_connection_move(connection, &thread->moving);
    return;
  }
  struct http_connection *connection = *socket_context;
  if (connection->refused_early && connection->fd >= 0) linger_add(&thread->lingers, connection->fd, thread->now_ms);
  *socket_context = NULL;
  connection_put(connection);
}

/* ---- One request ---- */

static void *on_target(void *context, const char *target, struct MHD_Connection *mhd) {
  (void)context;
  struct http_connection *connection = connection_of(mhd);
  connection->aware = true;
  http_connection_move(connection, &connection->thread->moving); /* headers and body have their time from here on */
  request_start(&connection->request, target);
  return connection;
}

/* The library keeps name and value where they were read, unless a value went on in the next line: then it has put that line
 * behind the name, and nobody can say what was meant. */
static bool is_one_line(const char *name, size_t name_size, const char *value) {
  const char *at = name + name_size + 1;
  if ((uintptr_t)value < (uintptr_t)at || (uintptr_t)value - (uintptr_t)at > http_memory_bytes) return false;
  while (at < value && (*at == ' ' || *at == '\t')) at++;
  return at == value;
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value,
                                 size_t value_size) {
  struct head *head = context;
  (void)kind;
  if (value == NULL || !is_one_line(name, name_size, value)) head->malformed = true;
  else head_add(head, bytes_of(name, name_size), bytes_of(value, value_size));
  return MHD_YES;
}

static void add_header(struct MHD_Response *response, const char *name, const char *value) {
  must(MHD_add_response_header(response, name, value) == MHD_YES);
}

/* Hands the answer to the library, which sends it out of request.out; that stays untouched until the request is completed. */
static enum MHD_Result send_answer(struct http_connection *connection) {
  struct request *request = &connection->request;
  struct MHD_Response *response =
      MHD_create_response_from_buffer_with_free_callback_cls(request->out.size, request->out.data, NULL, NULL);
  if (response == NULL) return MHD_NO;
  add_header(response, "Content-Type", request_media_type(request));
  add_header(response, "X-Request-Id", request->id);
  if (request->status == STATUS_UNAUTHENTICATED) add_header(response, "WWW-Authenticate", "Bearer");
  if (request->status == STATUS_UPGRADE_REQUIRED) add_header(response, "Upgrade", "websocket");
  if (request->status == STATUS_METHOD_NOT_ALLOWED) add_header(response, "Allow", request->allow);
  if (request->retry_after_ms != 0) {
    char seconds[16];
    (void)snprintf(seconds, sizeof seconds, "%u", head_retry_after_s(request->retry_after_ms));
    add_header(response, "Retry-After", seconds);
  }
  if (request->close || connection->thread->stopping_since_ms != 0) add_header(response, "Connection", "close");
  enum MHD_Result result = MHD_queue_response(connection->connection, request->http_status, response);
  MHD_destroy_response(response);
  let_hold_go(connection);
  connection->thread->again = true;                              /* it may be sent in the next round only */
  http_connection_move(connection, &connection->thread->moving); /* the client has its time to read it */
  return result;
}

static enum MHD_Result on_head(struct http_connection *connection, const char *method, const char *version) {
  struct request *request = &connection->request;
  (void)MHD_get_connection_values_n(connection->connection, MHD_HEADER_KIND, on_header, &request->head);
  request_open(request, method, strcmp(version, MHD_HTTP_VERSION_1_1) == 0);
  if (request->phase != REQUEST_ANSWERED) return MHD_YES;
  /* An answer in this call ends the connection, so it is given here only where the request's end is in doubt, or where it
   * spares the client to send a body. */
  const struct head *head = &request->head;
  if (head->content_lengths == 0 && head->transfer_encodings == 0 && !request->close) return MHD_YES;
  connection->refused_early = true;
  return send_answer(connection);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *data, size_t *data_size, void **request_context) {
  (void)context, (void)mhd, (void)url;
  struct http_connection *connection = *request_context;
  struct request *request = &connection->request;
  if (request->phase == REQUEST_NEW) return on_head(connection, method, version);
  if (*data_size > 0) {
    bool go_on = request_body(request, data, *data_size);
    *data_size = 0;
    if (request_lacks_body(request)) connection->thread->again = true; /* there may be more in the socket */
    if (!go_on) connection->refused_early = true;
    return go_on ? MHD_YES : MHD_NO;
  }
  request_complete(request);
  if (request->phase == REQUEST_ANSWERED) return send_answer(connection);
  if (request->phase == REQUEST_FEEDING) return (enum MHD_Result)http_feed_stream(connection);
  must(request->phase == REQUEST_WAITING);
  stand_by(connection);
  return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                         enum MHD_RequestTerminationCode code) {
  (void)context, (void)mhd, (void)code;
  struct http_connection *connection = *request_context;
  if (connection == NULL) return;
  *request_context = NULL;
  connection->aware = false;
  let_hold_go(connection);
  request_reset(&connection->request);
  http_connection_move(connection, &connection->thread->moving);
}

/* The raw target is parsed by us; the library's own decoding would only be in the way. */
static size_t keep_escaped(void *context, struct MHD_Connection *mhd, char *text) {
  (void)context, (void)mhd;
  return strlen(text);
}

/* The certificate, at a handshake. */
static int on_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info, gnutls_pcert_st **certificates,
                          unsigned *count, gnutls_ocsp_data_st **staples, unsigned *staple_count, gnutls_privkey_t *key,
                          unsigned *flags) {
  (void)session, (void)info;
  *staples = NULL;
  *staple_count = 0;
  return tls_retrieve_gnutls(http_thread_current()->shared->edge->tls, certificates, count, key, flags);
}

struct MHD_Daemon *http_connection_daemon(struct http_thread *thread, int listen_fd, unsigned connections_max) {
  bool tls = thread->shared->edge->tls != NULL;
  struct MHD_OptionItem tls_options[] = {
      {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)on_certificate},
      {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)tls_priorities()},
      {MHD_OPTION_END, 0, NULL},
  };
  return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL,
                          on_request, thread, MHD_OPTION_ARRAY, tls ? tls_options : &tls_options[2], MHD_OPTION_EXTERNAL_LOGGER,
                          http_fault_log, thread, MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT,
                          connections_max, MHD_OPTION_PER_IP_CONNECTION_LIMIT, thread->shared->address_connections_max,
                          MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)http_idle_s_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)http_memory_bytes, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
                          MHD_OPTION_NOTIFY_CONNECTION, on_connection, thread, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
                          thread, MHD_OPTION_URI_LOG_CALLBACK, on_target, thread, MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped,
                          NULL, MHD_OPTION_END);
}

/* ---- The way back, and time ---- */

void http_connection_resume(struct http_connection *connection) {
  http_connection_move(connection, &connection->thread->moving);
  if (!connection->held) MHD_resume_connection(connection->connection);
}

static struct http_connection *connection_of_request(struct request *request) {
  return (struct http_connection *)(void *)((char *)request - offsetof(struct http_connection, request));
}

/* Of the feed, a page waits on; a stream begins at once. */
static void take_returned(struct http_connection *connection) {
  struct http_thread *thread = connection->thread;
  struct request *request = &connection->request;
  request_returned(request);
  if (request->phase != REQUEST_FEEDING) {
    thread->busy_until_ms = thread->now_ms + feed_busy_ms;
    http_connection_resume(connection);
  } else if (request->stream) {
    http_connection_resume(connection);
  } else {
    http_feed_admit(connection);
  }
}

void http_connection_take_returned(struct http_thread *thread) {
  struct mail *mail = outbox_take(&thread->outbox);
  while (mail != NULL) {
    struct mail *next = mail->next;
    struct request *request = job_returned(&thread->pool, mail);
    if (request != NULL) {
      take_returned(connection_of_request(request));
    }
    mail = next;
  }
}

static void give_up(struct http_connection *connection) {
  request_give_up(&connection->request);
  http_connection_resume(connection);
}

static int64_t list_next_ms(const struct age_list *list) {
  return list->oldest != NULL ? list->oldest->since_ms + list->wait_ms : INT64_MAX;
}

int64_t http_connection_next_ms(const struct http_thread *thread) {
  int64_t moving = list_next_ms(&thread->moving), waiting = list_next_ms(&thread->waiting);
  return moving < waiting ? moving : waiting;
}

void http_connection_expire(struct http_thread *thread) {
  while (list_next_ms(&thread->moving) <= thread->now_ms) {
    struct http_connection *late = thread->moving.oldest;
    age_remove(late);
    (void)shutdown(late->fd, SHUT_RDWR); /* the library sees the end and closes it */
  }
  while (list_next_ms(&thread->waiting) <= thread->now_ms) give_up(thread->waiting.oldest);
}

void http_connection_close_idle(struct http_thread *thread) {
  for (struct http_connection *at = thread->moving.oldest; at != NULL; at = at->newer)
    if (!at->aware) (void)shutdown(at->fd, SHUT_RDWR);
}

void http_connection_give_up_all(struct http_thread *thread) {
  while (thread->waiting.oldest != NULL) give_up(thread->waiting.oldest);
}
