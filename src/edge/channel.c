/* Owns the worker channel's thread: one libwebsockets context that serves the sockets of all workers, and the sessions behind
 * them. Other threads touch nothing here but three atomics and the library's wake-up. */
#include "edge/channel_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"

/* ---- sessions ---- */

static enum status port_submit(void *context, struct ticket *ticket, struct fault *fault) {
  struct channel *channel = context;
  return engine_submit(channel->edge->engine, ticket, fault);
}

static enum status port_check(void *context, const struct principal *who) {
  struct channel *channel = context;
  return directory_check(engine_directory(channel->edge->engine), who, edge_now_us(channel->edge));
}

/* The engine is there once Orbit is ready, and no session is made before. */
static void hub_open(struct channel *channel) {
  if (channel->hub_open) return;
  struct edge *edge = channel->edge;
  struct session_ports ports = {.submit = port_submit,
                                .check = port_check,
                                .context = channel,
                                .home = &channel->outbox,
                                .secret = journal_secret(edge->journal),
                                .node_id = edge->node_id};
  session_hub_init(&channel->hub, &ports);
  channel->directory_generation = directory_generation(engine_directory(edge->engine));
  channel->hub_open = true;
}

struct session *channel_session_new(struct channel *channel, const struct principal *who, struct lws *wsi) {
  if (channel->free_slot_count == 0) return NULL;
  hub_open(channel);
  uint32_t slot = channel->free_slots[--channel->free_slot_count];
  uint64_t number = ++channel->serial << channel_slot_bits | slot;
  struct session *session = session_new(&channel->hub, number, who, wsi);
  channel->slots[slot] = session;
  lws_set_opaque_user_data(wsi, session);
  (void)atomic_fetch_add(&channel->open, 1);
  return session;
}

static void channel_session_free(struct channel *channel, struct session *session) {
  uint32_t slot = (uint32_t)(session->number & (channel_slots_max - 1));
  must(channel->slots[slot] == session);
  channel->slots[slot] = NULL;
  channel->free_slots[channel->free_slot_count++] = (uint16_t)slot;
  session_free(session);
}

struct session *channel_find(struct channel *channel, uint64_t number) {
  struct session *session = channel->slots[number & (channel_slots_max - 1)];
  return session != NULL && session->number == number ? session : NULL;
}

void channel_each(struct channel *channel, void (*visit)(struct channel *channel, struct session *session)) {
  for (uint32_t slot = 0; slot < channel_slots_max; slot++)
    if (channel->slots[slot] != NULL) visit(channel, channel->slots[slot]);
}

bool channel_is_over(const struct channel *channel) {
  return channel->retire_said && channel->free_slot_count == channel_slots_max;
}

/* Asks to be called when the socket has room. */
static void socket_await(struct session *session, struct lws *wsi) {
  if (session->awaits_room) return;
  session->awaits_room = true;
  (void)lws_callback_on_writable(wsi);
}

/* Sends at once, without being told first that there is room: there nearly always is, and being told costs four changes of the
 * loop's descriptors a frame. What the socket does not take the library keeps, at most one frame; the rest waits for room. */
static void socket_send(struct session *session, struct lws *wsi) {
  uint8_t *data;
  size_t size;
  while (session->established && !session->awaits_room && session_next_frame(session, &data, &size)) {
    session->broken = lws_write(wsi, data, size, LWS_WRITE_TEXT) < 0;
    session_sent(session);
    /* A socket that is broken is closed from its own callback. */
    if (session->broken || lws_partial_buffered(wsi)) socket_await(session, wsi);
  }
}

void channel_settle(struct channel *channel) {
  struct session *session;
  while ((session = session_hub_next(&channel->hub)) != NULL) {
    struct lws *wsi = session->socket;
    if (wsi == NULL) {
      if (session_is_over(session) && !session->close_queued) channel_session_free(channel, session);
      continue;
    }
    if (session->close_said) continue;
    if (session->state == SESSION_CLOSED && !session->closing) {
      /* The close frame waits for room like everything else; who makes no room is cut off. */
      session->closing = true;
      lws_set_timeout(wsi, PENDING_TIMEOUT_CLOSE_SEND, worker_close_s_max);
    }
    if (session_wants_pause(session) != session->paused) {
      session->paused = !session->paused;
      (void)lws_rx_flow_control(wsi, session->paused ? 0 : 1);
    }
    if (session->first_out != NULL) socket_send(session, wsi);
    if (session->state == SESSION_CLOSED && session->first_out == NULL) socket_await(session, wsi);
  }
}

/* ---- callbacks of one socket ---- */

static int socket_writeable(struct session *session, struct lws *wsi) {
  session->awaits_room = false;
  if (session->broken) return -1;
  if (session->first_out != NULL) socket_send(session, wsi);
  if (session->first_out != NULL) return 0;
  if (session_wants_close(session)) channel_close_soon(session->hub->ports.context, session);
  return 0;
}

static void socket_received(struct session *session, struct lws *wsi, const void *data, size_t size) {
  session_receive(session, bytes_of(data, size), lws_is_first_fragment(wsi) != 0, lws_is_final_fragment(wsi) != 0,
                  lws_frame_is_binary(wsi) != 0);
}

static void socket_gone(struct channel *channel, struct lws *wsi) {
  struct session *session = lws_get_opaque_user_data(wsi);
  if (wsi == channel->listener) channel->listener = NULL;
  if (wsi == channel->mail) channel->mail = NULL;
  if (session == NULL) return;
  lws_set_opaque_user_data(wsi, NULL);
  (void)atomic_fetch_sub(&channel->open, 1);
  session_hang_up(session);
}

static int socket_event(struct channel *channel, struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                        size_t size) {
  struct session *session = lws_get_opaque_user_data(wsi);
  switch (reason) {
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
      tls_prepare_openssl(channel->edge->tls, user);
      return 0;
    case LWS_CALLBACK_HTTP:
      return channel_refuse_request(channel, wsi);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
      return channel_judge_upgrade(channel, wsi, in);
    case LWS_CALLBACK_ESTABLISHED:
      if (session == NULL) return -1;
      session->established = true;
      session_unsettle(session); /* what it was told before then may leave now */
      return 0;
    case LWS_CALLBACK_RECEIVE:
      if (session != NULL) socket_received(session, wsi, in, size);
      return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
      return session != NULL ? socket_writeable(session, wsi) : -1;
    case LWS_CALLBACK_WSI_CREATE:
      channel->sockets++;
      return 0;
    case LWS_CALLBACK_WSI_DESTROY:
      channel->sockets--;
      channel_forget_peer(channel, wsi);
      socket_gone(channel, wsi);
      return 0;
    case LWS_CALLBACK_CLOSED:
      socket_gone(channel, wsi);
      return 0;
    case LWS_CALLBACK_RAW_RX_FILE:
      if (wsi == channel->listener) channel_accept(channel);
      if (wsi == channel->mail) channel_take_mail(channel);
      return 0;
    default:
      return 0;
  }
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size) {
  struct lws_vhost *vhost = wsi != NULL ? lws_get_vhost(wsi) : NULL;
  struct channel *channel = vhost != NULL ? lws_vhost_user(vhost) : NULL;
  if (channel == NULL) return 0;
  int result = socket_event(channel, wsi, reason, user, in, size);
  channel_settle(channel);
  return result;
}

/* ---- the thread ---- */

/* Signals are the main thread's: what libuv installs for its loop, and takes away at its end, is put back. */
static const int loop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGFPE};
enum { loop_signal_count = sizeof loop_signals / sizeof loop_signals[0] };

static void signals_save(struct sigaction *ret_actions) {
  for (int i = 0; i < loop_signal_count; i++) (void)sigaction(loop_signals[i], NULL, &ret_actions[i]);
}

static void signals_restore(const struct sigaction *actions) {
  for (int i = 0; i < loop_signal_count; i++) (void)sigaction(loop_signals[i], &actions[i], NULL);
}

static bool context_make(struct channel *channel) {
  static const struct lws_protocols protocols[] = {{.name = "orbit.worker.v1",
                                                    .callback = on_event,
                                                    .rx_buffer_size = worker_read_bytes,
                                                    .tx_packet_size = worker_send_bytes},
                                                   {.name = NULL}};
  static const lws_retry_bo_t idle = {.secs_since_valid_ping = worker_ping_s, .secs_since_valid_hangup = worker_silence_s_max};
  struct lws_context_creation_info info = {.port = CONTEXT_PORT_NO_LISTEN_SERVER,
                                           .protocols = protocols,
                                           .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                                                      LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME,
                                           .user = channel,
                                           .server_string = "orbit",
                                           .vhost_name = "orbit",
                                           .pt_serv_buf_size = worker_read_bytes,
                                           .timeout_secs = worker_handshake_s_max,
                                           .keepalive_timeout = 1,
                                           .gid = -1,
                                           .uid = -1,
                                           .pcontext = &channel->context,
                                           .alpn = "http/1.1", /* the library would speak HTTP/2 as well */
                                           .retry_and_idle_policy = &idle};
  /* The libuv plugin, where it is installed, does not mind thousands of idle workers; the library's own loop looks at each of
   * them every time (with 3,000: six times the work for a message). */
  if (channel->edge->tls != NULL) info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
  uint64_t options = info.options;
  struct sigaction actions[loop_signal_count];
  signals_save(actions);
  info.options = options | LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN;
  channel->context = lws_create_context(&info);
  signals_restore(actions);
  channel->has_loop = channel->context != NULL;
  info.options = options;
  if (channel->context == NULL) channel->context = lws_create_context(&info);
  if (channel->context == NULL) return false;
  channel->vhost = lws_create_vhost(channel->context, &info);
  return channel->vhost != NULL;
}

/* Ends the context. A loop of its own needs to run once more to close what is open. */
static void context_end(struct channel *channel) {
  struct sigaction actions[loop_signal_count];
  signals_save(actions);
  for (int i = 0; i < 3 && channel->context != NULL; i++) {
    lws_context_destroy(channel->context); /* clears channel->context when nothing is left */
    if (channel->context != NULL) (void)lws_service(channel->context, 0);
  }
  signals_restore(actions);
}

/* The library makes some answers by itself and gives no context then; channel_door.c finds the channel here. */
static _Thread_local struct channel *current;

struct channel *channel_current(void) {
  return current;
}

static void *channel_run(void *context) {
  struct channel *channel = current = context;
  channel_timer_start(channel);
  /* A loop of its own returns from here once the timer has told it to end. */
  while (channel->context != NULL && !channel_is_over(channel)) (void)lws_service(channel->context, 0);
  if (!channel->has_loop) channel_timer_stop(channel);
  context_end(channel);
  return NULL;
}

/* The library closes what it adopts. */
static struct lws *adopt_file(struct channel *channel, int fd) {
  lws_sock_file_fd_type file = {.filefd = fd};
  return lws_adopt_descriptor_vhost(channel->vhost, LWS_ADOPT_RAW_FILE_DESC, file, "orbit.worker.v1", NULL);
}

static enum status channel_open(struct channel *channel, int listen_fd, struct fault *fault) {
  cleanup(guard_close) int listening = listen_fd;
  int flags = fcntl(listening, F_GETFL);
  if (flags < 0 || fcntl(listening, F_SETFL, flags | O_NONBLOCK) < 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "the worker channel's socket cannot be used: %s", strerror(errno));
  if (!context_make(channel))
    return fault_set(fault, STATUS_IO_ERROR, NULL, "libwebsockets cannot be started (is the limit of open files very low?)");
  int mail_fd = fcntl(channel->outbox.event_fd, F_DUPFD_CLOEXEC, 0);
  if (mail_fd < 0 || (channel->mail = adopt_file(channel, mail_fd)) == NULL)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "the worker channel's wake-up cannot be watched");
  channel->listener = adopt_file(channel, listening);
  listening = -1;
  if (channel->listener == NULL)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "the worker channel's socket cannot be watched");
  return STATUS_OK;
}

static void channel_free(struct channel *channel) {
  journal_reader_free(channel->reader);
  history_free(channel->history);
  session_hub_clear(&channel->hub);
  outbox_clear(&channel->outbox);
  free(channel);
}

/* Starts the thread with all signals blocked but those that tell of its own faults: the others are the main thread's. */
static bool thread_start(struct channel *channel) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  sigset_t blocked, before;
  (void)sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) (void)sigdelset(&blocked, own[i]);
  (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
  int failed = pthread_create(&channel->thread, NULL, channel_run, channel);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed == 0;
}

enum status channel_start(struct edge *edge, int listen_fd, struct channel **ret_channel, struct fault *fault) {
  struct channel *channel = guard_calloc(1, sizeof *channel);
  channel->edge = edge;
  channel->timer.channel = channel->closer.channel = channel;
  channel->free_slot_count = channel_slots_max;
  for (uint32_t slot = 0; slot < channel_slots_max; slot++)
    channel->free_slots[slot] = (uint16_t)(channel_slots_max - 1 - slot);
  /* What a peer sends wrong is answered to the peer; it is no line in the log. */
  lws_set_log_level(0, NULL);
  if (outbox_init(&channel->outbox) != STATUS_OK) {
    (void)close(listen_fd);
    free(channel);
    return fault_set(fault, STATUS_IO_ERROR, NULL, "no event descriptor: %s", strerror(errno));
  }
  enum status status = channel_open(channel, listen_fd, fault);
  if (status == STATUS_OK && !thread_start(channel))
    status = fault_set(fault, STATUS_IO_ERROR, NULL, "the worker channel's thread cannot be started");
  if (status != STATUS_OK) {
    context_end(channel);
    channel_free(channel);
    return status;
  }
  *ret_channel = channel;
  return STATUS_OK;
}

/* The wake-up of the outbox serves for orders too: unlike the library's own it is there until the thread has ended. */
static void wake(struct channel *channel) {
  static const uint64_t one = 1;
  while (write(channel->outbox.event_fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void channel_goaway(struct channel *channel) {
  atomic_store(&channel->going_away, true);
  wake(channel);
}

void channel_stop(struct channel *channel) {
  atomic_store(&channel->going_away, true);
  atomic_store(&channel->stopping, true);
  wake(channel);
  (void)pthread_join(channel->thread, NULL);
  channel_free(channel);
}

uint64_t channel_sessions(const struct channel *channel) { return atomic_load(&channel->open); }
