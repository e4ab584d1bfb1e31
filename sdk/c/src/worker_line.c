/* Owns the connection of a worker: connecting, frames in and out, and connecting again. All of it runs on one thread but
 * sdk_line_wake. The order of locks is simple: the worker's lock is taken inside libwebsockets' callbacks and is never held
 * while one of its functions that may call back is entered from elsewhere. */
#include <fcntl.h>
#include <libwebsockets.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "worker.h"

enum {
  backoff_ms_first = 100,
  backoff_ms_max = 10000,
  failures_until_rediscovery = 3,
  connect_s_max = 5,
  handshake_s_max = 10,
  ping_s = 15,
  silence_s_max = 40,
  close_ms_max = 1000, /* for the server to answer our close when the worker ends */
  frame_bytes_kept = 64 * 1024,
  receive_bytes_step = 64 * 1024,
  replaced_close_code = 4001, /* a newer connection of the same instance */
};

struct sdk_line {
  struct orbit_worker *worker;
  struct lws_context *context;
  struct lws_vhost *host; /* carries the settings of connections */
  bool has_tls;
  struct lws *socket;           /* NULL: not connected, and not connecting */
  lws_sorted_usec_list_t timer; /* calls line_timer */
  int64_t timer_ms;             /* when it is set to; INT64_MAX: not set */
  int64_t connect_at_ms;        /* when to connect next, while socket is NULL */
  uint32_t failures;            /* to connect, in a row */
  int64_t end_at_ms;            /* when to stop waiting for a clean close; INT64_MAX: the worker goes on */
  bool established;
  unsigned http_status;   /* of the refused upgrade; 0: none */
  unsigned close_code;    /* that the server gave; 0: none */
  struct buffer received; /* the frame that is coming in */
  struct buffer sent;     /* the frame that goes out, behind LWS_PRE bytes */
};

static void line_look(struct sdk_line *line);
static bool line_prepare_tls(struct sdk_line *line);

/* ---- Connecting ---- */

static void failure_note(struct sdk_line *line, const char *message) {
  struct orbit_worker *worker = line->worker;
  (void)pthread_mutex_lock(&worker->lock);
  (void)sdk_fail(&worker->last_error, ORBIT_NOT_CONNECTED, NULL, "%s", message);
  worker->last_error.http_status = (int32_t)line->http_status;
  sdk_desk_log(&worker->desk, ORBIT_LOG_WARNING, "not connected: %s", message);
  (void)pthread_mutex_unlock(&worker->lock);
}

/* The next attempt to connect, after a pause that doubles with each failure and is spread over its upper half. */
static void line_retry_later(struct sdk_line *line, uint64_t at_least_ms) {
  uint64_t base = backoff_ms_first, random = 0;
  for (uint32_t i = 0; i < line->failures && base < backoff_ms_max; i++) base *= 2;
  if (base > backoff_ms_max) base = backoff_ms_max;
  (void)sdk_random(&random, sizeof random);
  uint64_t delay = base / 2 + random % (base / 2 + 1);
  if (delay < at_least_ms) delay = at_least_ms;
  line->failures++;
  line->connect_at_ms = sdk_monotonic_ms() + (int64_t)delay;
}

/* Asks the server for the address of its worker channel. */
static bool line_discover(struct sdk_line *line) {
  struct orbit_worker *worker = line->worker;
  struct orbit_server_info *info = NULL;
  struct orbit_error error;
  if (worker->url_is_given) return true;
  if (worker->has_url && line->failures % failures_until_rediscovery != failures_until_rediscovery - 1) return true;
  if (orbit_info(worker->client, &info, &error) != ORBIT_OK) {
    failure_note(line, error.message);
    return worker->has_url;
  }
  struct sdk_url url;
  bool good = sdk_url_parse(info->worker_url, &url) && url.websocket;
  if (good) {
    if (sdk_url_is_wildcard(&url)) {
      memcpy(url.host, worker->server.host, sizeof url.host);
      url.host_is_ipv6 = worker->server.host_is_ipv6;
    }
    worker->url = url;
    worker->has_url = true;
  } else {
    failure_note(line, "the server names no address for workers");
  }
  orbit_server_info_free(info);
  return good || worker->has_url;
}

/* Programs that a handler starts get no connection of ours. */
static void socket_keep(struct lws *socket) {
  int fd = lws_get_socket_fd(socket);
  if (fd >= 0) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void line_connect(struct sdk_line *line) {
  static const lws_retry_bo_t policy = {.secs_since_valid_ping = ping_s, .secs_since_valid_hangup = silence_s_max};
  struct orbit_worker *worker = line->worker;
  bool ready = line_discover(line);
  if (ready && worker->url.tls && !line_prepare_tls(line)) {
    failure_note(line, "TLS could not be made ready; the file of authorities may be missing or malformed");
    ready = false;
  }
  if (!ready) {
    line_retry_later(line, 0);
    return;
  }
  char authority[url_authority_bytes];
  sdk_url_authority(&worker->url, authority);
  struct lws_client_connect_info info = {
      .context = line->context,
      .vhost = line->host,
      .address = worker->url.host,
      .port = worker->url.port,
      .path = strcmp(worker->url.path, "/") == 0 ? "/v1/worker" : worker->url.path,
      .host = authority,
      .protocol = "orbit.worker.v1",
      .local_protocol_name = "orbit-worker",
      .ssl_connection = worker->url.tls ? LCCSCF_USE_SSL : 0,
      .alpn = worker->url.tls ? "http/1.1" : NULL,
      .retry_and_idle_policy = &policy,
      .pwsi = &line->socket,
      .userdata = line,
  };
  line->http_status = line->close_code = 0;
  line->established = false;
  line->connect_at_ms = INT64_MAX;
  /* A failure is told through the callback, be it at once or later; what is left here is a failure before there was a socket.
   */
  if (lws_client_connect_via_info(&info) == NULL && line->connect_at_ms == INT64_MAX) {
    line->socket = NULL;
    failure_note(line, "no connection could be begun");
    line_retry_later(line, 0);
  }
  if (line->socket != NULL) socket_keep(line->socket);
}

/* The socket is gone, before or after it was established. */
static void line_lost(struct sdk_line *line, const char *reason) {
  struct orbit_worker *worker = line->worker;
  line->socket = NULL;
  buffer_clear(&line->received);
  (void)pthread_mutex_lock(&worker->lock);
  struct sdk_desk *desk = &worker->desk;
  if (desk->welcomed) line->failures = 0;
  uint64_t at_least_ms = desk->goaway ? desk->reconnect_after_ms : 0;
  desk->goaway = false;
  sdk_desk_disconnected(desk);
  if (line->close_code == replaced_close_code) {
    sdk_desk_fail(desk, 0, "REPLACED", "another connection took over this worker's instance id");
  } else if (line->http_status == 401 || line->http_status == 403) {
    sdk_desk_fail(desk, (int)line->http_status, line->http_status == 401 ? "UNAUTHENTICATED" : "PERMISSION_DENIED",
                  "the server refused the worker's token (HTTP %u)", line->http_status);
  }
  bool ended = worker->stopping || worker->drain_finished || desk->failed;
  (void)pthread_mutex_unlock(&worker->lock);
  if (!ended) failure_note(line, reason);
  line_retry_later(line, at_least_ms);
}

/* ---- Frames ---- */

static int line_receive(struct sdk_line *line, struct lws *socket, const void *data, size_t size) {
  struct orbit_worker *worker = line->worker;
  if (lws_is_first_fragment(socket)) buffer_reset(&line->received);
  buffer_append(&line->received, data, size);
  if (line->received.failed) return -1;
  if (!lws_is_final_fragment(socket)) return 0;
  (void)pthread_mutex_lock(&worker->lock);
  bool was_welcomed = worker->desk.welcomed;
  sdk_desk_receive(&worker->desk, buffer_bytes(&line->received), sdk_monotonic_ms());
  const struct sdk_held *held;
  unsigned granted = 0;
  TAILQ_FOREACH(held, &worker->desk.granted, queue) { granted++; }
  if (!was_welcomed && worker->desk.welcomed) (void)pthread_cond_broadcast(&worker->changed);
  bool go_on = !worker->desk.broken && !worker->desk.failed;
  (void)pthread_mutex_unlock(&worker->lock);
  for (; granted > 0; granted--) (void)pthread_cond_signal(&worker->work); /* who is woken wants the lock */
  if (line->received.capacity > frame_bytes_kept) buffer_clear(&line->received);
  if (go_on) line_look(line);
  return go_on ? 0 : -1;
}

/* Nothing more is wanted of this connection. With the lock held. */
static bool line_is_finished(const struct orbit_worker *worker) {
  const struct sdk_desk *desk = &worker->desk;
  return worker->stopping || desk->failed || desk->broken || worker->drain_finished || (desk->goaway && sdk_desk_is_idle(desk));
}

static int line_write(struct sdk_line *line, struct lws *socket) {
  static const uint8_t room[LWS_PRE];
  struct orbit_worker *worker = line->worker;
  buffer_reset(&line->sent);
  buffer_append(&line->sent, room, sizeof room);
  (void)pthread_mutex_lock(&worker->lock);
  if (line_is_finished(worker)) {
    (void)pthread_mutex_unlock(&worker->lock);
    lws_close_reason(socket, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
    return -1;
  }
  uint32_t count = sdk_desk_compose(&worker->desk, sdk_monotonic_ms(), &line->sent);
  bool more = sdk_desk_has_output(&worker->desk), broken = worker->desk.broken;
  (void)pthread_mutex_unlock(&worker->lock);
  if (broken) return -1;
  if (count > 0) {
    size_t size = line->sent.size - LWS_PRE;
    if (lws_write(socket, line->sent.data + LWS_PRE, size, LWS_WRITE_TEXT) < (int)size) return -1;
  }
  if (line->sent.capacity > frame_bytes_kept) buffer_clear(&line->sent);
  if (more) (void)lws_callback_on_writable(socket);
  line_look(line);
  return 0;
}

/* ---- What is next ---- */

static void line_timer(lws_sorted_usec_list_t *timer) {
  struct sdk_line *line = lws_container_of(timer, struct sdk_line, timer);
  line->timer_ms = INT64_MAX;
  line_look(line);
}

static void line_timer_set(struct sdk_line *line, int64_t at_ms, int64_t now_ms) {
  if (at_ms == line->timer_ms) return;
  line->timer_ms = at_ms;
  int64_t delay_ms = at_ms > now_ms ? at_ms - now_ms : 0;
  lws_sul_schedule(line->context, 0, &line->timer, line_timer,
                   at_ms == INT64_MAX ? LWS_SET_TIMER_USEC_CANCEL : (lws_usec_t)delay_ms * LWS_US_PER_MS + 1);
}

/* Looks at the worker and sees to it that whatever is to be done is done: writing, connecting, closing, waking up in time. */
static void line_look(struct sdk_line *line) {
  struct orbit_worker *worker = line->worker;
  int64_t now_ms = sdk_monotonic_ms();
  (void)pthread_mutex_lock(&worker->lock);
  worker->line_woken = false;
  if (now_ms >= worker->desk.next_due_ms) sdk_desk_tick(&worker->desk, now_ms);
  if (sdk_desk_is_drained(&worker->desk) && !worker->drain_finished) {
    worker->drain_finished = true;
    (void)pthread_cond_broadcast(&worker->changed);
  }
  bool finished = line_is_finished(worker), has_output = sdk_desk_has_output(&worker->desk);
  int64_t due_ms = worker->desk.next_due_ms;
  (void)pthread_mutex_unlock(&worker->lock);
  if (line->socket != NULL && line->established) {
    if (finished || has_output) (void)lws_callback_on_writable(line->socket);
  } else if (line->socket == NULL && line->connect_at_ms < due_ms) {
    due_ms = line->connect_at_ms;
  }
  if (line->end_at_ms < due_ms) due_ms = line->end_at_ms;
  line_timer_set(line, due_ms, now_ms);
}

/* ---- libwebsockets ---- */

static int token_append(struct sdk_line *line, struct lws *socket, void *in, size_t size) {
  const char *authorization = line->worker->authorization;
  uint8_t **at = in, *end = *at + size;
  socket_keep(socket); /* it may be another one than was begun with: a name can have several addresses */
  return lws_add_http_header_by_token(socket, WSI_TOKEN_HTTP_AUTHORIZATION, (const uint8_t *)authorization,
                                      (int)strlen(authorization), at, end);
}

static void refusal_note(struct sdk_line *line, struct lws *socket, const void *in, size_t size) {
  char reason[160] = "the connection could not be made";
  line->http_status = lws_http_client_http_response(socket);
  if (line->http_status >= 300) {
    (void)snprintf(reason, sizeof reason, "the server refused the connection with HTTP %u", line->http_status);
  } else if (in != NULL) {
    sdk_text_copy(reason, sizeof reason, bytes_of(in, size));
  }
  line_lost(line, reason);
}

static int line_callback(struct lws *socket, enum lws_callback_reasons reason, void *user, void *in, size_t size) {
  (void)user;
  struct lws_context *context = socket != NULL ? lws_get_context(socket) : NULL;
  struct sdk_line *line = context != NULL ? lws_context_user(context) : NULL;
  if (line == NULL) return 0;
  bool current = socket == line->socket;
  switch (reason) {
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
      return token_append(line, socket, in, size);
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      line->established = true;
      (void)pthread_mutex_lock(&line->worker->lock);
      sdk_desk_connected(&line->worker->desk);
      (void)pthread_mutex_unlock(&line->worker->lock);
      line_look(line);
      return 0;
    case LWS_CALLBACK_CLIENT_RECEIVE:
      return line_receive(line, socket, in, size);
    case LWS_CALLBACK_CLIENT_WRITEABLE:
      return line_write(line, socket);
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      if (size >= 2) line->close_code = (unsigned)((const uint8_t *)in)[0] << 8 | ((const uint8_t *)in)[1];
      return 0;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      if (current) refusal_note(line, socket, in, in != NULL ? size : 0);
      return 0;
    case LWS_CALLBACK_CLIENT_CLOSED:
      if (current) line_lost(line, "the connection was closed");
      return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
      line_look(line);
      return 0;
    default:
      return 0;
  }
}

static const struct lws_protocols protocols[] = {
    {.name = "orbit-worker", .callback = line_callback, .rx_buffer_size = receive_bytes_step},
    {.name = NULL},
};

/* libwebsockets logs by process, to stderr; what matters of it reaches the worker's own log. */
static void logging_quieten(void) { lws_set_log_level(0, NULL); }

static struct lws_context_creation_info creation_info(const struct orbit_worker *worker) {
  return (struct lws_context_creation_info){
      .port = CONTEXT_PORT_NO_LISTEN,
      .protocols = protocols,
      .gid = -1,
      .uid = -1,
      .client_ssl_ca_filepath = worker->ca_file,
      .http_proxy_address = ":0", /* no proxy, whatever http_proxy in the environment says */
      .connect_timeout_secs = connect_s_max,
      .timeout_secs = handshake_s_max,
      .fd_limit_per_thread = 8,
  };
}

/* TLS is made ready when it is first needed: it reads every certificate that the system trusts. */
static bool line_prepare_tls(struct sdk_line *line) {
  if (line->has_tls) return true;
  struct lws_context_creation_info info = creation_info(line->worker);
  info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
  line->has_tls = lws_init_vhost_client_ssl(&info, line->host) == 0;
  return line->has_tls;
}

struct sdk_line *sdk_line_new(struct orbit_worker *worker) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, logging_quieten);
  struct sdk_line *line = calloc(1, sizeof *line);
  if (line == NULL) return NULL;
  line->worker = worker;
  line->timer_ms = line->end_at_ms = INT64_MAX;
  buffer_init(&line->received, worker_frame_bytes_max);
  buffer_init(&line->sent, LWS_PRE + 2U * worker_frame_bytes_max);
  struct lws_context_creation_info info = creation_info(worker);
  info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
  info.user = line;
  /* libwebsockets makes the whole process ignore SIGPIPE. The program keeps what it had: the thread that writes blocks all
   * signals. */
  struct sigaction before;
  (void)sigaction(SIGPIPE, NULL, &before);
  line->context = lws_create_context(&info);
  (void)sigaction(SIGPIPE, &before, NULL);
  info.options = LWS_SERVER_OPTION_VALIDATE_UTF8;
  if (line->context != NULL) line->host = lws_create_vhost(line->context, &info);
  if (line->host != NULL) return line;
  if (line->context != NULL) lws_context_destroy(line->context);
  free(line);
  return NULL;
}

void sdk_line_free(struct sdk_line *line) {
  if (line == NULL) return;
  /* What it still writes must not end the program. */
  sigset_t pipe, before;
  const struct timespec at_once = {.tv_sec = 0};
  (void)sigemptyset(&pipe);
  (void)sigaddset(&pipe, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
  lws_context_destroy(line->context);
  if (sigismember(&before, SIGPIPE) == 0) (void)sigtimedwait(&pipe, NULL, &at_once);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  buffer_clear(&line->received);
  buffer_clear(&line->sent);
  free(line);
}

void sdk_line_wake(struct sdk_line *line) { lws_cancel_service(line->context); }

static bool line_is_over(struct sdk_line *line) {
  struct orbit_worker *worker = line->worker;
  (void)pthread_mutex_lock(&worker->lock);
  bool ended = worker->stopping || worker->desk.failed || worker->drain_finished;
  (void)pthread_mutex_unlock(&worker->lock);
  if (!ended) return false;
  int64_t now_ms = sdk_monotonic_ms();
  if (line->end_at_ms == INT64_MAX) {
    line->end_at_ms = now_ms + close_ms_max;
    line_look(line);
  }
  /* What is still open then goes with the context. */
  return line->socket == NULL || !line->established || now_ms >= line->end_at_ms;
}

void sdk_line_run(struct sdk_line *line) {
  while (!line_is_over(line)) {
    if (line->socket == NULL && sdk_monotonic_ms() >= line->connect_at_ms) line_connect(line);
    line_look(line);
    if (lws_service(line->context, 0) < 0) break;
  }
}
