/* What the files of the worker channel share: channel.c (the thread and its callbacks), channel_door.c (who gets in),
 * channel_mail.c (what comes from the engine, and by the clock). */
#ifndef ORBIT_EDGE_CHANNEL_INTERNAL_H
#define ORBIT_EDGE_CHANNEL_INTERNAL_H

#include <libwebsockets.h>
#include <pthread.h>
#include <stdatomic.h>

#include "edge/channel.h"
#include "edge/session.h"

/* The serial number stands above the slot, so that a session is found without a search and no number comes twice. */
enum { channel_slot_bits = 13, channel_slots_max = 1 << channel_slot_bits };
static_assert(channel_slots_max >= 2 * worker_connections_max, "closed sessions that wait for the engine keep no worker out");
static_assert(LWS_PRE <= session_pad_bytes, "the library has room before each frame");

struct channel_timer { /* the library hands back the address of the list entry */
  lws_sorted_usec_list_t entry;
  struct channel *channel;
};

struct channel_peer { /* an accepted socket, and where it comes from */
  struct lws *wsi;
  uint8_t address[16]; /* of IPv6, or IPv4 mapped into it; zero: no network address */
};

struct channel {
  struct edge *edge;
  pthread_t thread;
  struct lws_context *context;
  struct lws_vhost *vhost;
  struct lws *listener; /* the listening socket, adopted as a file; NULL once it is closed */
  struct lws *mail;     /* the outbox's event_fd (a duplicate), likewise */
  struct outbox outbox;
  struct session_hub hub;
  struct channel_timer timer, closer;
  struct session *to_close; /* chained by next_to_close; closed by the closer */
  /* The engine's log is there only once Orbit is ready: both are made by the first assignment. */
  struct journal_reader *reader;
  struct history *history;
  uint64_t directory_generation;
  uint64_t serial; /* of the last session */
  struct session *slots[channel_slots_max];
  uint16_t free_slots[channel_slots_max];
  uint32_t free_slot_count;
  uint32_t peer_count;
  struct channel_peer peers[worker_connections_max + worker_sockets_spare_max];
  uint32_t sockets;   /* accepted and not closed yet, workers included */
  bool has_loop;      /* the library runs an event loop of its own, from which it must be told to return */
  bool hub_open;      /* hub was made: the engine is there */
  bool accept_paused; /* the process has no descriptor left: tried again by the timer */
  bool goaway_said, retire_said;
  _Atomic uint64_t open; /* sessions whose socket is open */
  _Atomic bool going_away, stopping;
};

/* ---- channel.c ---- */

/* Carries out what sessions want since the last call. */
void channel_settle(struct channel *channel);
/* The session with this number, or NULL. */
struct session *channel_find(struct channel *channel, uint64_t number);
/* A session in a free slot; NULL: there is none. */
struct session *channel_session_new(struct channel *channel, const struct principal *who, struct lws *wsi);
void channel_each(struct channel *channel, void (*visit)(struct channel *channel, struct session *session));

/* The channel that runs on this thread; NULL elsewhere. */
struct channel *channel_current(void);

/* A stop is over when every session is: its socket closed, its tickets back, its BYE read. */
bool channel_is_over(const struct channel *channel);

/* ---- channel_door.c ---- */

/* Accepts what waits at the listening socket. */
void channel_accept(struct channel *channel);
/* An accepted socket is gone. */
void channel_forget_peer(struct channel *channel, const struct lws *wsi);
/* The request to upgrade: 0 lets it in, with a session attached to wsi; else it was answered and the connection is to be
 * closed. */
int channel_judge_upgrade(struct channel *channel, struct lws *wsi, const char *upgrade);
/* Any other request: answered; the connection is to be closed. */
int channel_refuse_request(struct channel *channel, struct lws *wsi);

/* ---- channel_mail.c ---- */

/* Takes all that the engine has put in the outbox. */
void channel_take_mail(struct channel *channel);
/* Credentials that are not in force any more close their sessions. */
void channel_check_credentials(struct channel *channel, bool always);
/* Says goaway and retires once it was asked for. */
void channel_heed_orders(struct channel *channel);
void channel_timer_start(struct channel *channel);
void channel_timer_stop(struct channel *channel);
/* Closes the session's socket with its code, from outside the socket's own callbacks. */
void channel_close_soon(struct channel *channel, struct session *session);

#endif
