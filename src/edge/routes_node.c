/* Owns the routes about the server itself: alive, ready, who and where it is. */
#include "codec/wire_http.h"
#include "edge/routes.h"

enum status node_health_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  (void)answer, (void)fault;
  buffer_append_text(&request->out, "{\"status\":\"ok\"}");
  return STATUS_OK;
}

enum status node_ready_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  (void)answer, (void)fault;
  struct edge *edge = request->pool->edge;
  struct buffer *out = &request->out;
  int phase = atomic_load_explicit(&edge->phase, memory_order_acquire);
  bool ready = phase == EDGE_READY && !atomic_load_explicit(request->pool->stopping, memory_order_relaxed);
  buffer_append_char(out, '{');
  wire_bool_member(out, "ready", ready);
  if (phase == EDGE_REPLAYING) {
    uint32_t permille = atomic_load_explicit(&edge->replay_permille, memory_order_relaxed);
    wire_text_member(out, "phase", bytes_text("REPLAYING"));
    buffer_append_format(out, ",\"replay_percent\":%u.%u", permille / 10, permille % 10);
  } else {
    wire_text_member(out, "phase", bytes_text(ready ? "READY" : "DRAINING"));
  }
  buffer_append_char(out, '}');
  if (!ready) {
    request->status = STATUS_UNAVAILABLE;
    request->http_status = status_http(STATUS_UNAVAILABLE);
    request->retry_after_ms = 1000;
  }
  return STATUS_OK;
}

enum status node_worker_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  (void)answer;
  return fault_set(fault, STATUS_UPGRADE_REQUIRED, NULL, "the worker channel is at %s", request->pool->edge->worker_url);
}

static void write_limits(struct buffer *out) {
  const struct {
    const char *name;
    uint64_t value;
  } limits[] = {
      {"body_bytes", http_body_bytes_max},
      {"batch_body_bytes", http_batch_body_bytes_max},
      {"batch_items", batch_items_max},
      {"document_bytes", document_bytes_max},
      {"target_bytes", http_target_bytes_max},
      {"header_bytes", http_header_bytes_max},
      {"idempotency_key_chars", idempotency_key_chars_max},
      {"json_depth", json_depth_max},
      {"page_rows_default", page_rows_default},
      {"page_rows", page_rows_max},
      {"cursor_chars", cursor_chars_max},
      {"reason_chars", reason_chars_max},
      {"evidence_ref_chars", evidence_ref_chars_max},
      {"attempts", attempts_max},
      {"attempt_evidence", attempt_evidence_max},
      {"cancel_requests", cancel_requests_max},
      {"request_ms", http_request_ms_max},
      {"worker_capacity", worker_capacity_max},
      {"worker_message_bytes", worker_message_bytes_max},
      {"worker_frame_bytes", worker_frame_bytes_max},
      {"worker_frame_messages", worker_frame_messages_max},
      {"lease_ms_min", lease_ms_min},
      {"lease_ms_max", lease_ms_max},
      {"cron_chars", cron_chars_max},
      {"timezone_chars", timezone_chars_max},
      {"schedule_interval_ms_min", schedule_interval_ms_min},
      {"schedule_interval_ms_max", schedule_interval_ms_max},
      {"catch_up_limit", catch_up_limit_max},
      {"preview_times", preview_times_max},
      {"subscriptions", subscriptions_max},
      {"feed_readers", feed_readers_max},
      {"feed_wait_ms", feed_wait_ms_max},
      {"task_timeout_ms", task_timeout_ms_max},
  };
  buffer_append_text(out, ",\"limits\":{");
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) wire_number_member(out, limits[i].name, limits[i].value);
  buffer_append_char(out, '}');
}

enum status node_info_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  (void)answer;
  struct edge *edge = request->pool->edge;
  struct buffer *out = &request->out;
  struct record_source source;
  enum status status = request_pool_source(request->pool, &source, fault);
  if (status != STATUS_OK) return status;
  buffer_append_char(out, '{');
  wire_text_member(out, "version", bytes_text(edge->version));
  wire_id_member(out, "node_id", &edge->node_id);
  wire_time_member(out, "time", edge_now_us(edge));
  wire_text_member(out, "worker_url", bytes_text(edge->worker_url));
  write_limits(out);
  buffer_append_text(out, ",\"log\":{");
  wire_decimal_member(out, "position", journal_reader_last_seq(request->pool->reader));
  buffer_append_text(out, "}}");
  return STATUS_OK;
}
