import { newId } from '../base/index.js'
import type { AuditAction } from '../contract/accounts/audit.js'
import type { Caller } from '../http/index.js'
import type * as accounts from './transactions/accounts.js'

/** Something that happened and who did it. */
export interface AuditEvent {
  /** In words: `Create Database`, `Cancel Workflow Runs`. */
  readonly action: AuditAction
  /** The id of what it was done to. */
  readonly entity: string
  /** Further facts; never a secret. */
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * The row of the audit log for an event. Rooms hand it to their own transaction (`recordAudit`), so that the act and
 * its entry stand or fall together.
 * @param atMs Unix milliseconds.
 */
export function auditRow(caller: Caller, event: AuditEvent, atMs: number): accounts.NewAuditRow {
  return {
    log_id: newId('log_', atMs),
    account_id: caller.accountId,
    actor: caller.email,
    source: caller.source,
    action: event.action,
    entity: event.entity,
    details: JSON.stringify(event.details),
    ip: caller.ip,
    at: atMs,
  }
}
