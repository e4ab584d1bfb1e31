/* Owns what reaches the worker channel from outside its sockets: the engine's answers and pushes, the clock, and the orders to
 * go away and to stop. */
#include "edge/channel_internal.h"

#include <string.h>

#include "base/guard.h"

/* ---- the outbox ---- */

/* A fresh snapshot for the assignments of one batch; false when the log cannot be read now. */
static bool snapshot_take(struct channel *channel) {
  if (channel->history == NULL) channel->history = history_new();
  if (channel->reader == NULL && journal_reader_new(channel->edge->journal, &channel->reader) != STATUS_OK) {
    channel->reader = NULL;
    return false;
  }
  return journal_reader_refresh(channel->reader) == STATUS_OK;
}

static void deliver(struct channel *channel, struct push *push, bool *snapshot) {
  struct session *session = channel_find(channel, push->session);
  struct record_source source = {NULL, NULL};
  if (session == NULL) return; /* it went away, and its BYE has not been read yet */
  if (push->mail.kind == MAIL_ASSIGN && session->state != SESSION_CLOSED) {
    /* The snapshot is younger than the commit that made the push, because the push was handed over after it. */
    if (!*snapshot) *snapshot = snapshot_take(channel);
    if (!*snapshot) {
      session_close(session, 1011, "the log cannot be read now", true);
      return;
    }
    source = record_source_of_reader(channel->reader);
  }
  session_push(session, push, source, channel->history);
}

void channel_take_mail(struct channel *channel) {
  bool snapshot = false;
  channel_heed_orders(channel);
  struct mail *mail = outbox_take(&channel->outbox);
  while (mail != NULL) {
    struct mail *next = mail->next;
    if (mail->kind == MAIL_TICKET) {
      session_hub_answer(&channel->hub, (struct ticket *)mail);
    } else {
      deliver(channel, (struct push *)mail, &snapshot);
      push_free((struct push *)mail);
    }
    mail = next;
  }
  if (snapshot) journal_reader_release(channel->reader);
  if (channel->hub_open) {
    session_hub_retry(&channel->hub);
    channel_check_credentials(channel, false);
  }
}

/* ---- credentials ---- */

static void check_credential(struct channel *channel, struct session *session) {
  if (session->state == SESSION_CLOSED) return;
  if (channel->hub.ports.check(channel, &session->who) != STATUS_OK)
    session_close(session, 1008, "the credential is not in force any more", false);
}

void channel_check_credentials(struct channel *channel, bool always) {
  uint64_t generation = directory_generation(engine_directory(channel->edge->engine));
  if (!always && generation == channel->directory_generation) return;
  channel->directory_generation = generation;
  channel_each(channel, check_credential);
}

/* ---- the orders of other threads ---- */

static void say_goaway(struct channel *channel, struct session *session) {
  uint32_t random = 0;
  (void)lws_get_random(channel->context, &random, sizeof random);
  session_goaway(session, 1 + random % goaway_jitter_ms_max);
}

static void retire(struct channel *channel, struct session *session) {
  (void)channel;
  session_retire(session);
}

void channel_heed_orders(struct channel *channel) {
  if (atomic_load(&channel->going_away) && !channel->goaway_said) {
    channel->goaway_said = true;
    channel_each(channel, say_goaway);
  }
  if (atomic_load(&channel->stopping) && !channel->retire_said) {
    channel->retire_said = true;
    channel_each(channel, retire);
    channel_timer_start(channel); /* from now on it looks more often */
  }
}

/* ---- the clock ---- */

static void timer_fired(lws_sorted_usec_list_t *entry) {
  struct channel *channel = lws_container_of(entry, struct channel_timer, entry)->channel;
  if (channel->accept_paused && channel->listener != NULL) {
    channel->accept_paused = false;
    (void)lws_rx_flow_control(channel->listener, 1);
  }
  if (channel->hub_open) {
    session_hub_retry(&channel->hub);
    channel_check_credentials(channel, true); /* tokens also end by time */
  }
  channel_heed_orders(channel);
  channel_settle(channel);
  if (channel->has_loop && channel_is_over(channel)) lws_context_destroy(channel->context); /* begins it: the loop ends */
  else channel_timer_start(channel);
}

/* Closing by a callback's return value is not polite with libuv: the library (4.1.6 as Debian builds it) then closes twice, and
 * the second time cuts the connection before the close frame is sent. Asked from outside it closes once. */
static void closer_fired(lws_sorted_usec_list_t *entry) {
  struct channel *channel = lws_container_of(entry, struct channel_timer, entry)->channel;
  while (channel->to_close != NULL) {
    struct session *session = channel->to_close;
    struct lws *wsi = session->socket;
    channel->to_close = session->next_to_close;
    session->next_to_close = NULL;
    session->close_queued = false;
    session_unsettle(session);
    if (wsi == NULL) continue;
    session->close_said = true;
    /* The library asks for a mutable text and does not change it. */
    lws_close_reason(wsi, (enum lws_close_status)session->close_code, (unsigned char *)session->close_reason,
                     strlen(session->close_reason));
    lws_set_timeout(wsi, PENDING_TIMEOUT_CLOSE_SEND, LWS_TO_KILL_SYNC);
  }
  channel_settle(channel);
}

void channel_close_soon(struct channel *channel, struct session *session) {
  if (session->close_queued || session->close_said) return;
  session->close_queued = true;
  session->next_to_close = channel->to_close;
  channel->to_close = session;
  lws_sul_schedule(channel->context, 0, &channel->closer.entry, closer_fired, 1);
}

void channel_timer_start(struct channel *channel) {
  /* While it stops, whoever keeps it from stopping is looked at more often. */
  lws_usec_t after_us = channel->retire_said ? LWS_USEC_PER_SEC / 10 : LWS_USEC_PER_SEC;
  lws_sul_schedule(channel->context, 0, &channel->timer.entry, timer_fired, after_us);
}

void channel_timer_stop(struct channel *channel) {
  lws_sul_cancel(&channel->timer.entry);
  lws_sul_cancel(&channel->closer.entry);
}
