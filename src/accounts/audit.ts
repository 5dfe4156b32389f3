import { newId } from '../base/index.js'
import { AUDIT_ACTIONS, AUDIT_KEPT_SECONDS, type AuditAction, type AuditLog } from '../contract/accounts/audit.js'
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

/** What stands in a field of an entry that has nothing to say there (reference redis 1.10). */
const NOTHING = 'NA'

/** An entry of the audit log as the management API shows it. `customer` is the account's e-mail or the team's id. */
export function auditLogOf(row: accounts.AuditRow, customer: string): AuditLog {
  const timestamp = Math.floor(row.at / 1000)
  return {
    log_id: row.log_id,
    customer_id: customer,
    actor: row.actor,
    timestamp,
    action: numberOf(row.action),
    action_string: row.action,
    source: row.source,
    entity: row.entity === '' ? NOTHING : row.entity,
    secondary_entity: NOTHING,
    third_entity: NOTHING,
    readable_format: `${row.actor}: ${row.action} ${row.entity}`.trimEnd(),
    ip: row.ip,
    ttl: timestamp + AUDIT_KEPT_SECONDS,
    reason: '',
    notes: row.details === '{}' ? '' : row.details,
  }
}

function numberOf(action: string): number {
  return Object.entries(AUDIT_ACTIONS).find(([name]) => name === action)?.[1] ?? 0
}
