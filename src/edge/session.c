/* Owns one worker's conversation: which message may come when, the tickets that are under way, the answers, and the end. */
#include "edge/session.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/json.h"
#include "codec/wire_worker.h"

/* A frame as it came, and all that its commands point at. Lives until the last of its tickets is back. */
struct inbound_frame {
  struct inbound_frame *next; /* among the spare ones */
  struct buffer text;
  struct buffer texts; /* minified documents and arrays, made by the reader of messages */
  struct json json;
  uint32_t references; /* the session while it works on it, and each ticket */
};

struct session_ticket {
  struct ticket ticket; /* first, so that the one is found from the other */
  struct session_ticket *next;
  struct session *session;
  struct inbound_frame *frame; /* NULL: BYE */
  struct id message_id;
};

enum {
  texts_slack_bytes = 64, /* a message: alignment of its arrays in texts */
};

/* ---- memory ---- */

static struct inbound_frame *inbound_new(struct session_hub *hub) {
  struct inbound_frame *frame = hub->spare_inbound;
  if (frame != NULL) {
    hub->spare_inbound = frame->next;
    hub->spare_inbound_count--;
    buffer_reset(&frame->text);
    buffer_reset(&frame->texts);
  } else {
    frame = guard_calloc(1, sizeof *frame);
    buffer_init(&frame->text, worker_frame_bytes_max);
    buffer_init(&frame->texts, 2 * worker_frame_bytes_max + texts_slack_bytes * worker_frame_messages_max);
    json_init(&frame->json);
  }
  frame->next = NULL;
  frame->references = 1;
  return frame;
}

static void inbound_destroy(struct inbound_frame *frame) {
  json_clear(&frame->json);
  buffer_clear(&frame->texts);
  buffer_clear(&frame->text);
  free(frame);
}

static void inbound_release(struct session_hub *hub, struct inbound_frame *frame) {
  must(frame->references > 0);
  if (--frame->references > 0) return;
  bool large = frame->text.capacity > session_spare_bytes_max || frame->texts.capacity > 2 * session_spare_bytes_max ||
               frame->json.capacity > session_spare_bytes_max / sizeof(struct json_token);
  if (large || hub->spare_inbound_count >= session_spare_frames_max) {
    inbound_destroy(frame);
    return;
  }
  frame->next = hub->spare_inbound;
  hub->spare_inbound = frame;
  hub->spare_inbound_count++;
}

/* An empty ticket of the session; frame NULL for BYE. */
static struct session_ticket *ticket_new(struct session *session, struct inbound_frame *frame) {
  struct session_hub *hub = session->hub;
  struct session_ticket *ticket = hub->spare_tickets;
  if (ticket != NULL) {
    hub->spare_tickets = ticket->next;
    hub->spare_ticket_count--;
  } else {
    ticket = guard_malloc(sizeof *ticket);
  }
  memset(ticket, 0, sizeof *ticket);
  ticket->session = session;
  ticket->frame = frame;
  if (frame != NULL) frame->references++;
  ticket->ticket.mail.kind = MAIL_TICKET;
  ticket->ticket.home = hub->ports.home;
  ticket->ticket.owner = session;
  return ticket;
}

static void ticket_release(struct session_hub *hub, struct session_ticket *ticket) {
  if (ticket->frame != NULL) inbound_release(hub, ticket->frame);
  if (hub->spare_ticket_count >= session_spare_tickets_max) {
    free(ticket);
    return;
  }
  ticket->next = hub->spare_tickets;
  hub->spare_tickets = ticket;
  hub->spare_ticket_count++;
}

void session_hub_init(struct session_hub *hub, const struct session_ports *ports) {
  *hub = (struct session_hub){.ports = *ports};
}

void session_hub_clear(struct session_hub *hub) {
  must(hub->unsettled == NULL && hub->unsaid == NULL);
  while (hub->spare_inbound != NULL) {
    struct inbound_frame *frame = hub->spare_inbound;
    hub->spare_inbound = frame->next;
    inbound_destroy(frame);
  }
  while (hub->spare_tickets != NULL) {
    struct session_ticket *ticket = hub->spare_tickets;
    hub->spare_tickets = ticket->next;
    free(ticket);
  }
  session_out_clear_spares(hub);
}

struct session *session_new(struct session_hub *hub, uint64_t number, const struct principal *who, void *socket) {
  must(number != 0 && socket != NULL);
  struct session *session = guard_calloc(1, sizeof *session);
  session->hub = hub;
  session->number = number;
  session->who = *who;
  session->socket = socket;
  session->state = SESSION_CONNECTED;
  return session;
}

bool session_is_over(const struct session *session) {
  return session->socket == NULL && session->tickets_out == 0 && (session->bye == BYE_NOT_NEEDED || session->bye == BYE_BACK);
}

void session_free(struct session *session) {
  if (session == NULL) return;
  must(session_is_over(session) && !session->unsettled && session->inbound == NULL && session->first_out == NULL);
  free(session);
}

/* ---- the channel's list of sessions that want something ---- */

void session_unsettle(struct session *session) {
  if (session->unsettled) return;
  session->unsettled = true;
  session->next_unsettled = session->hub->unsettled;
  session->hub->unsettled = session;
}

struct session *session_hub_next(struct session_hub *hub) {
  struct session *session = hub->unsettled;
  if (session == NULL) return NULL;
  hub->unsettled = session->next_unsettled;
  session->next_unsettled = NULL;
  session->unsettled = false;
  return session;
}

bool session_wants_pause(const struct session *session) {
  /* A paused session goes on when half of it is done, so that it is not stopped and started for every answer. */
  uint32_t mark = session->paused ? session_tickets_max / 2 : session_tickets_max;
  return session->state != SESSION_CLOSED && session->tickets_out >= mark;
}

bool session_wants_close(const struct session *session) {
  return session->state == SESSION_CLOSED && session->first_out == NULL && session->socket != NULL;
}

/* ---- the end ---- */

static void bye_say(struct session *session) {
  struct session_hub *hub = session->hub;
  struct session_ticket *ticket = ticket_new(session, NULL);
  ticket->ticket.command.kind = COMMAND_BYE;
  ticket->ticket.command.who = session->who;
  ticket->ticket.command.session = session->number;
  struct fault fault;
  if (hub->ports.submit(hub->ports.context, &ticket->ticket, &fault) == STATUS_OK) {
    session->bye = BYE_SAID;
    session->tickets_out++;
    return;
  }
  ticket_release(hub, ticket);
  session->bye = BYE_UNSAID;
  session->next_unsaid = hub->unsaid;
  hub->unsaid = session;
}

void session_hub_retry(struct session_hub *hub) {
  struct session *session = hub->unsaid;
  hub->unsaid = NULL;
  while (session != NULL) {
    struct session *next = session->next_unsaid;
    session->next_unsaid = NULL;
    bye_say(session);
    session = next;
  }
}

static void inbound_drop(struct session *session) {
  if (session->inbound == NULL) return;
  inbound_release(session->hub, session->inbound);
  session->inbound = NULL;
}

void session_close(struct session *session, uint16_t code, const char *reason, bool flush) {
  if (session->state == SESSION_CLOSED) {
    /* A peer that is being closed politely and fills its queue all the same gets no more of it. */
    if (!flush) session_out_drop(session);
    return;
  }
  session->state = SESSION_CLOSED;
  session->close_code = code;
  size_t length = strnlen(reason, sizeof session->close_reason - 1);
  memcpy(session->close_reason, reason, length);
  session->close_reason[length] = '\0';
  inbound_drop(session);
  if (!flush) session_out_drop(session);
  /* From here on the engine shall send it nothing and assign it nothing. */
  if (session->bye == BYE_NEEDED) bye_say(session);
  session_unsettle(session);
}

void session_hang_up(struct session *session) {
  session_close(session, 1001, "", false);
  session->socket = NULL;
  session_out_drop(session);
  session_unsettle(session);
}

static void retire_when_quiet(struct session *session) {
  if (session->retiring && session->tickets_out == 0) session_close(session, 1001, "the server is going away", true);
}

void session_retire(struct session *session) {
  session->retiring = true;
  inbound_drop(session);
  retire_when_quiet(session);
}

/* ---- messages that come ---- */

static void refuse(struct session *session, const struct id *message_id, const struct fault *fault,
                   const struct worker_result *result) {
  struct buffer *out = session_out_begin(session);
  if (id_is_zero(message_id)) worker_error_write(out, fault);
  else worker_refusal_write(out, message_id, fault, result);
  session_out_end(session);
}

static const struct id no_id;

static enum status expect(const struct session *session, enum command_kind kind, struct fault *fault) {
  bool is_hello = kind == COMMAND_HELLO;
  if (session->state == SESSION_CONNECTED && !is_hello)
    return fault_set(fault, STATUS_STATE_CONFLICT, "/type", "the first message must be worker.hello");
  if (session->state != SESSION_CONNECTED && is_hello)
    return fault_set(fault, STATUS_STATE_CONFLICT, "/type", "worker.hello was sent already on this connection");
  return STATUS_OK;
}

static enum status submit(struct session *session, struct session_ticket *ticket, struct fault *fault) {
  struct session_hub *hub = session->hub;
  struct command *command = &ticket->ticket.command;
  command->who = session->who;
  command->session = session->number;
  bool is_hello = command->kind == COMMAND_HELLO;
  bool is_drain = command->kind == COMMAND_DRAIN;
  if (is_hello) ticket->ticket.gauge = &session->gauge;
  /* Once it is submitted the ticket is the engine's: nothing of it is read below. */
  enum status status = hub->ports.submit(hub->ports.context, &ticket->ticket, fault);
  if (status != STATUS_OK) return status;
  session->tickets_out++;
  if (is_hello) {
    session->state = SESSION_GREETING;
    session->bye = BYE_NEEDED;
  }
  if (is_drain && session->state == SESSION_READY) session->state = SESSION_DRAINING;
  if (session->tickets_out == session_tickets_max) session_unsettle(session);
  return STATUS_OK;
}

/* True when it was a message that has a message_id, whether or not it was accepted. */
static bool take_message(struct session *session, struct inbound_frame *frame, uint32_t token) {
  struct session_hub *hub = session->hub;
  struct session_ticket *ticket = ticket_new(session, frame);
  struct command *command = &ticket->ticket.command;
  struct fault fault = {.status = STATUS_OK};
  const uint8_t *texts = frame->texts.data;
  enum status status = worker_message_read(&frame->json, token, hub->ports.secret, &session->who, &frame->texts, command,
                                           &ticket->message_id, &fault);
  must(frame->texts.data == texts); /* earlier commands of the frame point there */
  struct id message_id = ticket->message_id;
  if (status == STATUS_OK) status = expect(session, command->kind, &fault);
  if (status == STATUS_OK) status = submit(session, ticket, &fault);
  if (status != STATUS_OK) {
    fault.status = status;
    refuse(session, &message_id, &fault, NULL);
    ticket_release(hub, ticket);
  }
  return !id_is_zero(&message_id);
}

/* Reads the messages of a whole frame; true when one of them at least was a message. */
static bool take_frame(struct session *session, struct inbound_frame *frame) {
  struct fault fault = {.status = STATUS_OK};
  struct worker_frame messages;
  enum status status;
  messages.count = 0;
  if (session->inbound_binary) {
    status = fault_set(&fault, STATUS_INVALID_ARGUMENT, NULL, "frames must be text, this one is binary");
  } else {
    status = worker_frame_read(&frame->json, buffer_bytes(&frame->text), &messages, &fault);
  }
  /* The texts never move while they grow: what is made of a message is no larger than the message. */
  if (status == STATUS_OK && buffer_reserve(&frame->texts, 2 * frame->text.size + texts_slack_bytes * messages.count) == NULL)
    status = fault_set(&fault, STATUS_UNAVAILABLE, NULL, "out of memory");
  if (status != STATUS_OK) {
    refuse(session, &no_id, &fault, NULL);
    return false;
  }
  bool identified = false;
  uint32_t token = messages.first;
  for (uint32_t i = 0; i < messages.count && session->state != SESSION_CLOSED; i++) {
    if (take_message(session, frame, token)) identified = true;
    token = frame->json.tokens[token].next;
  }
  return identified;
}

static void frame_complete(struct session *session) {
  struct session_hub *hub = session->hub;
  struct inbound_frame *frame = session->inbound;
  session->inbound = NULL;
  if (hub->ports.check(hub->ports.context, &session->who) != STATUS_OK) {
    session_close(session, 1008, "the credential is not in force any more", false);
  } else if (take_frame(session, frame)) {
    session->bad_frames = 0;
  } else if (++session->bad_frames >= worker_bad_frames_max) {
    session_close(session, 1008, "too many frames in a row that were no messages", true);
  }
  inbound_release(hub, frame);
}

void session_receive(struct session *session, struct bytes piece, bool first, bool last, bool binary) {
  if (session->state == SESSION_CLOSED || session->retiring) return;
  if (first) {
    inbound_drop(session);
    session->inbound = inbound_new(session->hub);
    session->inbound_binary = binary;
  }
  if (session->inbound == NULL) return; /* the rest of a frame whose start was not taken */
  struct buffer *text = &session->inbound->text;
  if (piece.size > worker_frame_bytes_max - text->size) {
    session_close(session, 1009, "a frame may hold 1 MiB", true);
    return;
  }
  buffer_append_bytes(text, piece);
  if (text->failed) session_close(session, 1011, "out of memory", false);
  else if (last) frame_complete(session);
}

/* ---- answers that come back ---- */

static void answer_hello(struct session *session, struct session_ticket *ticket) {
  struct answer *answer = &ticket->ticket.answer;
  if (answer->status == STATUS_OK) {
    if (session->state == SESSION_GREETING) session->state = SESSION_READY;
    worker_welcome_write(session_out_begin(session), &ticket->message_id, &answer->as.welcome, &session->hub->ports.node_id);
    session_out_end(session);
  } else {
    if (session->state == SESSION_GREETING) session->state = SESSION_CONNECTED;
    refuse(session, &ticket->message_id, &answer->fault, NULL);
  }
}

static void answer_plain(struct session *session, struct session_ticket *ticket) {
  struct answer *answer = &ticket->ticket.answer;
  if (answer->status == STATUS_OK) {
    worker_ok_write(session_out_begin(session), &ticket->message_id);
    session_out_end(session);
  } else {
    refuse(session, &ticket->message_id, &answer->fault, NULL);
  }
}

static void answer_attempt(struct session *session, struct session_ticket *ticket) {
  struct answer *answer = &ticket->ticket.answer;
  if (answer->status == STATUS_OK) {
    worker_result_write(session_out_begin(session), &ticket->message_id, &answer->as.worker);
    session_out_end(session);
  } else {
    refuse(session, &ticket->message_id, &answer->fault, answer->as.worker.has_task ? &answer->as.worker : NULL);
  }
}

typedef void answer_writer(struct session *session, struct session_ticket *ticket);
static answer_writer *const answer_writers[COMMAND_KIND_COUNT] = {
    [COMMAND_HELLO] = answer_hello,     [COMMAND_CAPACITY] = answer_plain, [COMMAND_DRAIN] = answer_plain,
    [COMMAND_START] = answer_attempt,   [COMMAND_RENEW] = answer_attempt,  [COMMAND_FINISH] = answer_attempt,
    [COMMAND_RELEASE] = answer_attempt,
};

void session_hub_answer(struct session_hub *hub, struct ticket *returned) {
  struct session_ticket *ticket = (struct session_ticket *)returned;
  struct session *session = ticket->session;
  enum command_kind kind = returned->command.kind;
  must(session->tickets_out > 0);
  session->tickets_out--;
  if (kind == COMMAND_BYE) session->bye = BYE_BACK;
  else if (session->state != SESSION_CLOSED) answer_writers[kind](session, ticket);
  if (kind == COMMAND_HELLO && returned->answer.status == STATUS_OK) free(returned->answer.as.welcome.held);
  ticket_release(hub, ticket);
  retire_when_quiet(session);
  if (session->state == SESSION_CLOSED || session->paused) session_unsettle(session);
}

/* ---- what Orbit says by itself ---- */

static void push_assign(struct session *session, const struct push *push, struct record_source source,
                        struct history *history) {
  struct task_document document;
  if (history_document(history, source, &push->task, &document) != STATUS_OK) {
    session_close(session, 1011, "a task's record cannot be read", true);
    return;
  }
  worker_assign_write(session_out_begin(session), &document, &push->attempt);
  session_out_end(session);
}

static void push_close(struct session *session, const struct push *push) {
  char reason[sizeof session->close_reason] = "";
  size_t length = push->reason.size < sizeof reason ? push->reason.size : sizeof reason - 1;
  if (length > 0) memcpy(reason, push->reason.data, length);
  session_close(session, push->close_code, reason, true);
}

void session_push(struct session *session, const struct push *push, struct record_source source, struct history *history) {
  if (session->state == SESSION_CLOSED) return;
  switch (push->mail.kind) {
    case MAIL_ASSIGN:
      push_assign(session, push, source, history);
      /* The bytes themselves are counted now; the weight stood for them until here. */
      (void)atomic_fetch_sub_explicit(&session->gauge.unsent_bytes, push->weight, memory_order_relaxed);
      return;
    case MAIL_CANCEL:
      worker_cancel_write(session_out_begin(session), &push->task_id, &push->attempt_id, push->reason);
      break;
    case MAIL_ENDED:
      worker_ended_write(session_out_begin(session), &push->task_id, &push->attempt_id, push->ended_by);
      break;
    case MAIL_DRAINED:
      worker_drained_write(session_out_begin(session));
      break;
    default:
      must(push->mail.kind == MAIL_CLOSE);
      push_close(session, push);
      return;
  }
  session_out_end(session);
}

void session_goaway(struct session *session, uint32_t reconnect_after_ms) {
  if (session->state == SESSION_CLOSED) return;
  worker_goaway_write(session_out_begin(session), reconnect_after_ms);
  session_out_end(session);
}
