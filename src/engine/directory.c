/* Owns the copy of the credentials that edge threads judge tokens by. Entries are found by the hash of a token or by the
 * credential's id, and are never taken out: a credential that is over stays, marked so. One reader-writer lock; readers hold it
 * for a lookup, the engine for a commit that changes a credential. */
#include "engine/directory.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "codec/digest.h"

enum { directory_buckets_min = 64 };

struct directory_place {
  _Atomic uint32_t taken;
};

struct entry {
  struct entry *next_by_hash, *next_by_id;
  struct principal who; /* permissions expanded */
  int64_t expires_at;   /* 0: never */
  bool over;            /* revoked, or its application is disabled */
  uint8_t token_hash[token_hash_bytes];
  struct directory_place place;
};

struct directory {
  pthread_rwlock_t lock;
  struct entry **by_hash, **by_id; /* `buckets` chains each, a power of two */
  size_t buckets, count;
  _Atomic uint64_t generation;
};

static size_t hash_bucket(const struct directory *directory, const uint8_t hash[token_hash_bytes]) {
  uint64_t head;
  memcpy(&head, hash, sizeof head);
  return (size_t)head & (directory->buckets - 1);
}

static size_t id_bucket(const struct directory *directory, const struct id *id) {
  return (size_t)id_hash(id) & (directory->buckets - 1);
}

static void link_by_hash(struct directory *directory, struct entry *entry) {
  struct entry **bucket = &directory->by_hash[hash_bucket(directory, entry->token_hash)];
  entry->next_by_hash = *bucket;
  *bucket = entry;
}

static void unlink_by_hash(struct directory *directory, struct entry *entry) {
  struct entry **link = &directory->by_hash[hash_bucket(directory, entry->token_hash)];
  while (*link != entry) link = &(*link)->next_by_hash;
  *link = entry->next_by_hash;
}

static void link_by_id(struct directory *directory, struct entry *entry) {
  struct entry **bucket = &directory->by_id[id_bucket(directory, &entry->who.credential_id)];
  entry->next_by_id = *bucket;
  *bucket = entry;
}

static struct entry *find_by_id(const struct directory *directory, const struct id *id) {
  struct entry *entry = directory->by_id[id_bucket(directory, id)];
  while (entry != NULL && !id_equal(&entry->who.credential_id, id)) entry = entry->next_by_id;
  return entry;
}

/* Walks the whole chain, whatever it meets, so that the time tells nothing of how near a guess came. */
static struct entry *find_by_hash(const struct directory *directory, const uint8_t hash[token_hash_bytes]) {
  struct entry *found = NULL;
  for (struct entry *entry = directory->by_hash[hash_bucket(directory, hash)]; entry != NULL; entry = entry->next_by_hash)
    if (sodium_memcmp(entry->token_hash, hash, token_hash_bytes) == 0) found = entry;
  return found;
}

static void buckets_make(struct directory *directory, size_t buckets) {
  directory->by_hash = guard_calloc(buckets, sizeof(struct entry *));
  directory->by_id = guard_calloc(buckets, sizeof(struct entry *));
  directory->buckets = buckets;
}

/* Twice the buckets once there is an entry for each. */
static void buckets_grow(struct directory *directory) {
  if (directory->count < directory->buckets) return;
  struct entry **old = directory->by_id;
  size_t old_buckets = directory->buckets;
  free(directory->by_hash);
  buckets_make(directory, old_buckets * 2);
  for (size_t i = 0; i < old_buckets; i++) {
    struct entry *entry = old[i];
    while (entry != NULL) {
      struct entry *next = entry->next_by_id;
      link_by_id(directory, entry);
      link_by_hash(directory, entry);
      entry = next;
    }
  }
  free(old);
}

struct directory *directory_new(void) {
  struct directory *directory = guard_calloc(1, sizeof *directory);
  must(pthread_rwlock_init(&directory->lock, NULL) == 0);
  atomic_init(&directory->generation, 0);
  buckets_make(directory, directory_buckets_min);
  return directory;
}

void directory_free(struct directory *directory) {
  if (directory == NULL) return;
  for (size_t i = 0; i < directory->buckets; i++) {
    struct entry *entry = directory->by_id[i];
    while (entry != NULL) {
      struct entry *next = entry->next_by_id;
      free(entry);
      entry = next;
    }
  }
  free(directory->by_hash);
  free(directory->by_id);
  (void)pthread_rwlock_destroy(&directory->lock);
  free(directory);
}

static void entry_fill(struct entry *entry, const struct credential *credential, bool over) {
  entry->who = (struct principal){.credential_id = credential->id,
                                  .application_id = credential->application_id,
                                  .namespace_id = credential->namespace_id,
                                  .permissions = permissions_expand(credential->permissions),
                                  .credential_revision = credential->revision};
  entry->expires_at = credential->expires_at;
  entry->over = over;
  memcpy(entry->token_hash, credential->token_hash, token_hash_bytes);
}

void directory_put(struct directory *directory, const struct credential *credential, bool application_disabled) {
  bool over = credential->revoked || application_disabled;
  must(pthread_rwlock_wrlock(&directory->lock) == 0);
  struct entry *entry = find_by_id(directory, &credential->id);
  bool ends = entry != NULL && !entry->over && (over || entry->who.credential_revision != credential->revision);
  if (entry != NULL) {
    unlink_by_hash(directory, entry);
    entry_fill(entry, credential, over);
  } else {
    buckets_grow(directory);
    entry = guard_calloc(1, sizeof *entry);
    entry_fill(entry, credential, over);
    link_by_id(directory, entry);
    directory->count++;
  }
  link_by_hash(directory, entry);
  must(pthread_rwlock_unlock(&directory->lock) == 0);
  if (ends) atomic_fetch_add_explicit(&directory->generation, 1, memory_order_release);
}

static bool entry_in_force(const struct entry *entry, int64_t now_us) {
  return entry != NULL && !entry->over && (entry->expires_at == 0 || now_us < entry->expires_at);
}

enum status directory_authenticate(struct directory *directory, struct bytes token, int64_t now_us,
                                   struct principal *ret_principal, struct fault *fault) {
  bool known = false;
  struct principal who = {.permissions = 0};
  if (token.size > 0 && token.size <= bearer_token_chars_max) {
    uint8_t hash[token_hash_bytes];
    token_hash(token, hash);
    must(pthread_rwlock_rdlock(&directory->lock) == 0);
    const struct entry *entry = find_by_hash(directory, hash);
    known = entry_in_force(entry, now_us);
    if (known) who = entry->who;
    must(pthread_rwlock_unlock(&directory->lock) == 0);
  }
  if (!known)
    return fault_set(fault, STATUS_UNAUTHENTICATED, "Authorization", "the bearer token is unknown or not in force any more");
  *ret_principal = who;
  return STATUS_OK;
}

enum status directory_check(struct directory *directory, const struct principal *who, int64_t now_us) {
  must(pthread_rwlock_rdlock(&directory->lock) == 0);
  const struct entry *entry = find_by_id(directory, &who->credential_id);
  bool in_force = entry_in_force(entry, now_us) && entry->who.credential_revision == who->credential_revision;
  must(pthread_rwlock_unlock(&directory->lock) == 0);
  return in_force ? STATUS_OK : STATUS_UNAUTHENTICATED;
}

/* Entries stay where they are, so that a place needs the lock to be found and not to be left. */
enum status directory_enter(struct directory *directory, const struct principal *who, uint32_t limit,
                            struct directory_place **ret_place, struct fault *fault) {
  must(pthread_rwlock_rdlock(&directory->lock) == 0);
  struct entry *entry = find_by_id(directory, &who->credential_id);
  must(pthread_rwlock_unlock(&directory->lock) == 0);
  if (entry == NULL) return fault_set(fault, STATUS_UNAUTHENTICATED, "Authorization", "the credential is not known any more");
  uint32_t before = atomic_fetch_add_explicit(&entry->place.taken, 1, memory_order_relaxed);
  if (limit != 0 && before >= limit) {
    directory_leave(&entry->place);
    (void)fault_set(fault, STATUS_RATE_LIMITED, NULL, "this credential has as many requests under way as it may: %u", limit);
    fault->retry_after_ms = crowded_retry_ms;
    return STATUS_RATE_LIMITED;
  }
  *ret_place = &entry->place;
  return STATUS_OK;
}

void directory_leave(struct directory_place *place) {
  if (place == NULL) return;
  uint32_t before = atomic_fetch_sub_explicit(&place->taken, 1, memory_order_relaxed);
  must(before > 0);
}

uint64_t directory_generation(struct directory *directory) {
  return atomic_load_explicit(&directory->generation, memory_order_acquire);
}
