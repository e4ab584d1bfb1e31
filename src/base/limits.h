/* Every bound of Orbit, unit last in the name. Related bounds are asserted against each other at the end.
 * Bounds that users meet are listed in schema/semantics.md, section "Limits". */
#ifndef ORBIT_BASE_LIMITS_H
#define ORBIT_BASE_LIMITS_H

#include <assert.h>
#include <stdint.h>

enum {
  /* HTTP */
  http_body_bytes_max = 512 * 1024,
  http_batch_body_bytes_max = 4 * 1024 * 1024,
  http_target_bytes_max = 8 * 1024,
  http_header_bytes_max = 16 * 1024,
  http_connections_max = 4096, /* over all HTTP threads */
  http_idle_s_max = 30,
  http_request_ms_max = 30000, /* headers and body together */
  http_threads_max = 64,
  http_memory_bytes = 26 * 1024,                   /* of a connection: request line, headers, what was read last */
  http_held_max = 64,                              /* of a thread: waiting for the engine without being suspended */
  http_held_ms_max = 10,                           /* and for so long */
  http_kept_bytes_max = 16 * 1024,                 /* a buffer larger than this is not kept for the next request */
  http_waiting_body_bytes_max = 256 * 1024 * 1024, /* bodies of all requests under way together; more is answered 503 */
  http_discard_bytes_max = 4 * 1024 * 1024,        /* read on after a refusal, so that the client can read why; then closed */
  http_answer_bytes_max = 16 * 1024 * 1024,
  http_page_bytes = 1024 * 1024,    /* a page ends early behind the item that passes this */
  http_spare_jobs_max = 1024,       /* kept for the next requests, each thread's */
  http_spare_connections_max = 256, /* the same */
  http_lingers_max = 64,
  http_linger_ms_max = 2000,
  http_stop_ms_max = 2000,         /* for answers that are ready, once the server stops */
  http_ticket_stop_ms_max = 10000, /* for commands that the engine still has then */
  target_segments_max = 8,
  target_parameters_max = 24,
  unavailable_retry_ms = 1000, /* what a 503 says that knows no better */
  ticket_ms_max = 30000,       /* a command that the engine has not answered by then is answered 503 */
  idempotency_key_chars_max = 128,
  request_id_chars = 32,
  tls_file_bytes_max = 256 * 1024, /* of a certificate with its chain, and of a key */
  tls_chain_certificates_max = 16,
  bearer_token_chars_max = 512,

  /* JSON */
  json_depth_max = 64,
  json_answer_depth_max = 72, /* for readers of answers: a document stands a few levels deeper there than in its request */
  json_tokens_max = 1 << 20,
  json_text_bytes_max = 16 * 1024 * 1024,
  json_linear_keys_max = 16,       /* objects with more keys look for duplicates by sorting */
  json_tokens_kept_max = 1 << 16,  /* a parser gives back what one giant text made it allocate over this */
  document_bytes_max = 256 * 1024, /* payload, result, details: each, without outside white space */

  /* texts, in characters unless the name says bytes */
  word_chars_max = 128, /* handler, handler_version, payload_version: ASCII */
  key_chars_max = 256,  /* business_key, concurrency_key: code points */
  name_chars_max = 128,
  reason_chars_max = 1024,
  evidence_ref_chars_max = 512,
  error_code_chars_max = 128,
  error_message_chars_max = 4096,
  utf8_bytes_per_char_max = 4,

  /* lists */
  page_rows_default = 20,
  page_rows_max = 100,
  cursor_chars_max = 1024,
  cursor_position_bytes_max = 512, /* what a listing needs to go on: keys of its last row */
  cursor_kind_chars_max = 32,
  trigger_looks_max = 1000, /* events of a schedule looked at for one page of its triggers */
  batch_items_max = 1000,
  batch_answer_item_bytes = 512, /* about as much as an item's answer is longer than the item */
  queue_ids_max = 256,
  handlers_max = 256,

  /* administration */
  limit_value_max = 1000000000, /* of max_unfinished, max_running, key_concurrency and each number of a rate */

  /* feed */
  subscriptions_max = 1000,      /* of a namespace */
  feed_wait_ms_max = 30000,      /* of a long poll */
  feed_heartbeat_ms = 15000,     /* of an event stream that has nothing to say */
  feed_readers_max = 1024,       /* long polls and event streams under way, over all HTTP threads */
  feed_window_events = 1024,     /* the newest events, which a thread has looked at once for all its readers */
  feed_scan_events_max = 4096,   /* looked at for one reader before the next has its turn */
  feed_stream_bytes = 64 * 1024, /* of an event stream: written ahead of its socket; the event that passes this is whole */
  feed_full_retry_ms = 1000,
  feed_owners_max = 16384,   /* objects whose tenant and queue a thread remembers */
  feed_slice_calm_us = 2000, /* readers are served no longer than this in one round … */
  feed_slice_busy_us = 500,  /* … and than this while commands come in … */
  feed_pause_busy_max = 15,  /* … and then not for so many times as long */
  feed_busy_ms = 20,         /* a command that came back in this time makes it so */

  /* tasks */
  attempts_max = 100,
  attempt_evidence_max = 100, /* reports without authority that are kept of one attempt */
  cancel_requests_max = 100,  /* that are kept of one task */
  priority_max = 9,
  delay_ms_max = 86400000,
  available_past_us_max = 1000000,

  /* schedules */
  cron_chars_max = 256,
  timezone_chars_max = 64,
  catch_up_limit_default = 10,
  catch_up_limit_max = 1000,
  preview_times_max = 100,
  schedule_late_us_max = 60000000, /* a time that is decided later than this was missed */
  schedule_retry_us = 60000000,    /* a schedule whose zone cannot be read is looked at again after this */
  ids_ahead_ms_max = 60000,        /* of the log's time, at a start: one a start within one millisecond */
  tick_triggers_max = 1024,        /* decided in one commit */
  zone_file_bytes_max = 256 * 1024,
  zone_list_bytes_max = 1024 * 1024,

  /* workers */
  worker_capacity_max = 1000,
  worker_offers_max = 4096, /* queues times handlers of one worker */
  worker_close_replaced = 4001,
  lease_ms_min = 5000,
  lease_ms_max = 300000,
  lease_ms_default = 30000,
  worker_message_bytes_max = 512 * 1024,
  worker_frame_bytes_max = 1024 * 1024,
  worker_frame_messages_max = 256,
  worker_unsent_bytes_max = 4 * 1024 * 1024,   /* more than this waiting: closed with 1013 */
  worker_unsent_bytes_pause = 2 * 1024 * 1024, /* more than this waiting: no new assignment */
  worker_bad_frames_max = 3,
  worker_ping_s = 20,
  worker_silence_s_max = 60,
  worker_connections_max = 4096,
  goaway_jitter_ms_max = 5000,
  session_tickets_max = 1024,         /* commands of one worker under way: more are not read from its socket */
  session_join_bytes_max = 64 * 1024, /* waiting messages are joined in one frame up to this */
  worker_handshake_s_max = 10,
  worker_close_s_max = 5,              /* how long a peer may take to read the close frame */
  worker_accepts_max = 64,             /* at once: a flood of connections leaves time for those that are there */
  worker_refusal_bytes_max = 4096,     /* the body of an answer to a request that becomes no worker */
  worker_read_bytes = 16 * 1024,       /* read from a socket at once */
  worker_send_bytes = 128 * 1024,      /* handed to a socket at once */
  session_spare_frames_max = 256,      /* kept for the next, of each direction */
  session_spare_bytes_max = 64 * 1024, /* a kept frame keeps no more than this of each memory */
  session_spare_tickets_max = 4096,
  worker_sockets_spare_max = 256, /* sockets that are not workers (yet), on top of worker_connections_max */

  /* engine */
  tick_tickets_max = 1024, /* BATCH_MAX: commands of one commit */
  mailbox_tickets_max = 16384,
  tick_expiries_max = 1024,
  tick_evictions_max = 1024, /* ended tasks that leave memory behind one tick */
  evict_places_min = 2048,   /* while so many places are free, no memory is taken for new tasks */
  memory_beside_parts = 8,   /* of memory-max, one in so many is for what is no task: the follower's rows, what it sorts */
  dispatch_leases_max = 1024,
  dispatch_asides_max = 4096, /* tasks of one tick that are put aside because their concurrency key is held */
  events_per_command_max = 8,
  engine_silence_us_min = 1000000, /* Orbit heard nobody for longer than this: leases are longer by as much */
  event_list_scratch_bytes = 1024, /* texts that deciding writes: before and after of one audit record */
  departures_max = 256,            /* threads that one tick answers */
  company_tickets_min = 8,         /* a tick with so many does not wait for its commit: the next one begins meanwhile … */
  slow_disk_us_min = 3000,         /* … where commits take this long of late */
  flight_us_max = 100000,          /* a disk that takes longer than this is waited for: nothing more is decided */
  dispatch_slow_again_us = 20000,  /* a worker that reads slowly is looked at again after this */
  disk_full_again_us = 1000000,    /* a disk that was full is looked at again after this */
  engine_wait_us_max = 1000000,    /* the engine's sleep, before it looks at the clock again */
  mailbox_full_retry_ms = 100,
  crowded_retry_ms = 1000, /* when a credential has as much under way as it may */
  quota_full_retry_ms = 1000,

  /* log */
  record_header_bytes = 64,
  event_body_depth_max = 8,
  event_body_bytes_max = 1024 * 1024,
  token_bytes = 32,
  token_hash_bytes = 32,
  identity_bytes = 16,
  digest_bytes = 16,
  digest_gathered_bytes = 1024, /* of a meaning, hashed at once */
  genesis_secret_bytes = 32,
  log_transaction_pages_max =
      128,                     /* that a commit may take besides those of its records: branches, roots, lists of free pages */
  log_reap_interval_ms = 1000, /* a dead reader's snapshot costs pages with every commit until its place is freed */
  log_readers_max = 254,       /* reader slots, over all processes */
  log_replay_chunk_events = 4096,           /* a snapshot of replay is let go after so many records … */
  log_replay_chunk_bytes = 4 * 1024 * 1024, /* … or bytes */
  replay_ahead_events = 512,                /* decoded and not yet visited, where replay reads ahead … */
  replay_ahead_batch_events = 64,           /* … handed over so many at a time */
  replay_glance_far_events = 24,            /* before its visit an event's places in memory are asked for … */
  replay_glance_near_events = 8,            /* … and then what is found there */
  commits_in_flight_max = 32,               /* handed to the journal and not durable yet */
  log_reserve_chunk_bytes = 1024 * 1024,    /* zeroes written between two commits while there is room enough */
  log_zero_piece_bytes = 256 * 1024,        /* zeroes handed to one write */

  /* memory */
  heap_entries_min = 16,       /* a heap begins with room for so many */
  heap_kept_entries_max = 256, /* an emptied heap gives back what it has room for beyond this */

  /* checkpoint (views/) */
  retention_s_default = 30 * 24 * 3600, /* how long ended tasks are answered */
  hot_window_s_default = 24 * 3600,     /* how long ended tasks stay in memory */
  views_tables_max = 16,
  checkpoint_batch_events = 65536,     /* folded into rows between two commits, rounded up to whole commits of the log */
  checkpoint_chunk_entries = 4095,     /* receipts of one row: 16 whole pages with LMDB's page header */
  checkpoint_interval_ms = 1000,       /* how often the follower looks for new events */
  checkpoint_index_receipts = 1 << 20, /* so many receipts wait before they are sorted into the index of identities */
  checkpoint_clean_rows = 4096,        /* removed from views/ in one commit, once their time is over */
  checkpoint_retry_ms = 30000,         /* after its disk failed it */
  checkpoint_stop_ms_max = 10000,      /* how long a clean stop lets it catch up */
  resident_receipts_min = 1024,        /* of those that wait, however little memory there may be */
  follower_commits_max = 16,           /* of clearing away, then events come first again */
  recent_receipts_max = 4,             /* of tasks, remembered until it is known whether their task ended with them */
  eviction_newer_max = 1000,           /* rows of the store passed over because memory holds newer ones */
  list_looks_max = 10000,  /* tasks looked at in one call: a rare filter takes several pages instead of stalling a tick */
  compare_tries_max = 100, /* snapshots of log and views taken again because a server wrote between them */
  warming_pieces_max = 4,  /* pieces of memory made ready beside a load */
  walker_depth_max = 32,   /* levels of a tree in the file */
  walker_page_bytes_min = 512,
  walker_page_bytes_max = 32 * 1024,
  walker_tries_max = 1000, /* new snapshots without an event between them */
  walker_scan_pages = 64,  /* read at once by the scan for lost pages */

  /* the server as a program */
  config_text_bytes_max = 512,
  host_bytes_max = 256,
  listen_backlog_max = 1024,
  server_line_bytes_max = 4096,            /* of what it writes to stderr */
  heap_spare_bytes = 8 * 1024 * 1024,      /* at the end of each thread's heap, kept from the kernel */
  heap_mapped_bytes_min = 2 * 1024 * 1024, /* allocations from this size on are mapped one by one */
};

static const uint64_t task_timeout_ms_max = 2592000000U; /* 30 days */
static const uint64_t schedule_interval_ms_min = 1000;
static const uint64_t schedule_interval_ms_max = UINT64_C(315360000000); /* ten years of 365 days */
static const uint64_t log_map_bytes_default = UINT64_C(256) << 30;
static const uint64_t views_map_bytes_default = UINT64_C(64) << 30;
static const uint64_t log_reserve_step_bytes = UINT64_C(64) << 20;
static const uint64_t commit_bytes_max = UINT64_C(32) << 20; /* a tick stops taking tickets near this */
/* Of commits that are not durable yet: the next tick waits while there is more. */
static const uint64_t flight_bytes_max = UINT64_C(4) << 20;
/* A commit of the engine that grew larger gives its memory back. */
static const uint64_t flight_kept_bytes_max = UINT64_C(256) << 10;
/* A tick never starts with less room in the log than this, unless the disk is full. */
static const uint64_t tick_reserve_bytes = UINT64_C(32) << 20;
/* What one command may add to a commit at the most: two documents, a reason, and what surrounds them. */
static const uint64_t command_bytes_max = UINT64_C(1) << 20;
static const int64_t clock_ahead_us_max = INT64_C(60) * 1000000;
/* The retention's time is looked at in steps of a part of itself, within these. */
static const int64_t retention_look_us_min = INT64_C(1000000);
static const int64_t retention_look_us_max = INT64_C(3600) * 1000000;

static_assert(worker_message_bytes_max <= worker_frame_bytes_max, "a message fits a frame");
static_assert(worker_unsent_bytes_pause + worker_frame_bytes_max < worker_unsent_bytes_max,
              "one assignment on top of the pause mark does not close a worker");
static_assert(document_bytes_max * 2 <= http_body_bytes_max, "payload and its envelope fit a body");
static_assert(document_bytes_max * 2 + reason_chars_max * 4 < event_body_bytes_max, "an event can hold what a body may hold");
static_assert(engine_silence_us_min < lease_ms_min * 1000 / 3,
              "a silence that no lease is lengthened for is shorter than a third of any lease");
static_assert(flight_us_max * 5 <= engine_silence_us_min, "assignments wait for a disk shorter than is made up for");
static_assert(lease_ms_min <= lease_ms_default && lease_ms_default <= lease_ms_max, "default lease in range");
static_assert(tick_tickets_max <= mailbox_tickets_max, "a tick never takes more than the mailbox holds");
static_assert(session_join_bytes_max + worker_message_bytes_max < worker_frame_bytes_max,
              "joined messages stay a lawful frame");
static_assert(worker_frame_messages_max <= session_tickets_max, "a paused session is over its bound by one frame at most");
static_assert(worker_frame_messages_max <= tick_tickets_max, "one frame fits one tick");
static_assert(json_depth_max + 4 <= json_answer_depth_max, "the deepest document fits an answer and an array of frames");
static_assert(json_linear_keys_max < 64, "quadratic work is bounded");
static_assert(http_batch_body_bytes_max <= json_text_bytes_max, "every body can be parsed");
static_assert(json_tokens_kept_max <= json_tokens_max, "what is kept is part of what may be made");
static_assert((cursor_position_bytes_max + identity_bytes) * 4 / 3 + 4 <= cursor_chars_max, "a cursor fits its characters");
static_assert(replay_ahead_events % replay_ahead_batch_events == 0 && replay_ahead_events > replay_ahead_batch_events,
              "a reader ahead always has room for a whole batch");
static_assert(replay_glance_near_events < replay_glance_far_events, "near comes after far");
static_assert(log_reserve_chunk_bytes % log_zero_piece_bytes == 0, "a chunk of zeroes is whole pieces");
static_assert(http_target_bytes_max + http_header_bytes_max < http_memory_bytes, "what is allowed is judged by us");
static_assert(http_page_bytes + 3 * document_bytes_max < http_answer_bytes_max, "a page and one more item fit an answer");
static_assert(page_rows_default <= page_rows_max, "default page in range");
static_assert(feed_stream_bytes + 4 * document_bytes_max < http_answer_bytes_max, "the largest event fits behind others");
static_assert(feed_heartbeat_ms < http_request_ms_max, "an event stream that is read is never late");
static_assert(catch_up_limit_default <= catch_up_limit_max, "default limit in range");
static_assert(catch_up_limit_max <= tick_triggers_max, "what catches up fits a tick");

#endif
