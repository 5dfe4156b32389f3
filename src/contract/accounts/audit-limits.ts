/** Limits of the audit log, in a separate file because the threads of the store need no schemas. */

/** Guaranteed retention of an entry, seconds: `ttl` is `timestamp` plus this. */
export const AUDIT_KEPT_SECONDS = 182 * 24 * 60 * 60

/** Most entries of one page of the audit log. */
export const MAX_AUDIT_ENTRIES = 1000

/** Most entries of the audit log that one request searches. */
export const MAX_AUDIT_SEARCHED = 20_000
