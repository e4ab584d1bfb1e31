/* One worker's connection as a machine that names the state it expects (schema/worker.md). It takes the bytes of frames, makes
 * tickets of messages, writes answers and pushes into a queue of frames, and says when to close. It knows no socket, no clock
 * and no library: the channel feeds it and carries out what it wants. Private to the edge; one thread. */
#ifndef ORBIT_EDGE_SESSION_H
#define ORBIT_EDGE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/status.h"
#include "codec/digest.h"
#include "engine/mail.h"
#include "state/history.h"

enum session_state {
  SESSION_CONNECTED = 1, /* nothing but worker.hello is expected */
  SESSION_GREETING,      /* worker.hello is with the engine; what follows it goes the same way, in order */
  SESSION_READY,         /* everything but a second worker.hello */
  SESSION_DRAINING,      /* as READY, after worker.drain */
  SESSION_CLOSED,        /* nothing is read or queued any more; the socket is to be closed, or is gone */
};

/* What sessions need of the world around them. */
struct session_ports {
  /* engine_submit: UNAVAILABLE takes nothing. */
  enum status (*submit)(void *context, struct ticket *ticket, struct fault *fault);
  /* directory_check at the time of the call. */
  enum status (*check)(void *context, const struct principal *who);
  void *context;
  struct outbox *home; /* where tickets come back */
  const struct secret *secret;
  struct id node_id;
};

struct session;
struct inbound_frame;
struct outbound_frame;
struct session_ticket;

/* What all sessions of one thread share: reusable memory, and who has something for the channel to do. */
struct session_hub {
  struct session_ports ports;
  struct session *unsettled; /* chained by next_unsettled */
  struct session *unsaid;    /* whose BYE the engine had no room for; chained by next_unsaid */
  struct inbound_frame *spare_inbound;
  struct outbound_frame *spare_outbound;
  struct session_ticket *spare_tickets;
  uint32_t spare_inbound_count, spare_outbound_count, spare_ticket_count;
};

/* Free room before each outgoing frame, for the library's header. */
enum { session_pad_bytes = 32 };

enum session_bye { BYE_NOT_NEEDED = 0, BYE_NEEDED, BYE_UNSAID, BYE_SAID, BYE_BACK };

struct session {
  struct session_hub *hub;
  uint64_t number; /* names the session for the engine; never used twice */
  struct principal who;
  void *socket; /* the channel's; NULL once it is gone */
  enum session_state state;
  enum session_bye bye;
  struct session_gauge gauge;
  uint32_t tickets_out;          /* with the engine, BYE included */
  uint32_t bad_frames;           /* in a row */
  uint64_t queued_bytes;         /* in the queue below; part of what the gauge counts */
  struct inbound_frame *inbound; /* the frame that is being put together; NULL between frames */
  struct outbound_frame *first_out, *last_out;
  struct session *next_unsettled, *next_unsaid, *next_to_close;
  uint16_t close_code;    /* with CLOSED */
  char close_reason[124]; /* what a close frame can carry, and a NUL */
  bool unsettled;         /* in the hub's list */
  bool retiring;          /* nothing more is read; closed with 1001 once all answers are there */
  bool paused;            /* the channel was told to stop reading the socket */
  bool closing;           /* the channel has begun to close the socket … */
  bool close_queued;      /* … it stands in its list of those to be closed … */
  bool close_said;        /* … and it has handed the close frame to the library */
  bool inbound_binary;
  bool established; /* the channel may send frames: the answer to the upgrade has left */
  bool awaits_room; /* the channel asked the library to say when the socket has room */
  bool broken;      /* the socket takes nothing any more; it is closed when the library calls next */
};

void session_hub_init(struct session_hub *hub, const struct session_ports *ports);
void session_hub_clear(struct session_hub *hub); /* every session was freed before */
/* The next session that wants something of the channel (output, close, pause, to be freed), once each; NULL: none. */
struct session *session_hub_next(struct session_hub *hub);
/* Tries again to say BYE for sessions whose BYE found the mailbox full. */
void session_hub_retry(struct session_hub *hub);
/* The ticket that came back: its session writes the answer. The ticket is the hub's again. */
void session_hub_answer(struct session_hub *hub, struct ticket *ticket);

/* A session for an upgraded socket. */
struct session *session_new(struct session_hub *hub, uint64_t number, const struct principal *who, void *socket);
/* Frees it; session_is_over must be true. NULL is fine. */
void session_free(struct session *session);
/* True when the socket is gone, every ticket is back, and the engine knows that it is gone: then it may be freed. */
bool session_is_over(const struct session *session);

/* Bytes of a frame as they come. first and last tell whether the piece opens and ends the frame; an oversize frame closes. */
void session_receive(struct session *session, struct bytes piece, bool first, bool last, bool binary);
/* Something that Orbit says by itself. source and history give an assignment's document. The push stays the caller's. */
void session_push(struct session *session, const struct push *push, struct record_source source, struct history *history);
void session_goaway(struct session *session, uint32_t reconnect_after_ms);
/* Reads nothing more, writes all answers that are under way, then closes with 1001. */
void session_retire(struct session *session);
/* Closes: flush sends what is queued before, else the queue is dropped. The first close wins. */
void session_close(struct session *session, uint16_t code, const char *reason, bool flush);
/* The socket is gone, whoever closed it. */
void session_hang_up(struct session *session);

/* Whether the socket should not be read for now, because the session has as many commands under way as it may. */
bool session_wants_pause(const struct session *session);
/* The next frame to be sent, or false. *ret_data has session_pad_bytes of room before it and is valid until session_sent. */
bool session_next_frame(struct session *session, uint8_t **ret_data, size_t *ret_size);
void session_sent(struct session *session);
/* True when it is closed and nothing is left to be sent before the close frame. */
bool session_wants_close(const struct session *session);

/* ---- within session*.c ---- */

void session_unsettle(struct session *session);
/* Opens a message at the end of the queue: append it to the buffer that is returned, then call session_out_end. */
struct buffer *session_out_begin(struct session *session);
void session_out_end(struct session *session);
void session_out_drop(struct session *session);
void session_out_clear_spares(struct session_hub *hub);

#endif
