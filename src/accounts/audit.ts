import { isObject, newId, tryParseJson } from '../base/index.js'
import { AUDIT_ACTIONS, type AuditAction, type AuditLog } from '../contract/accounts/audit.js'
import { AUDIT_KEPT_SECONDS } from '../contract/accounts/audit-limits.js'
import type { Caller } from '../http/index.js'
import type * as accounts from './transactions/accounts.js'
import type { NamedAuditRow } from './transactions/audit-names.js'

/** An action that the audit log records. */
export interface AuditEvent {
  /** The name of the action, such as `Create Database`. */
  readonly action: AuditAction
  /** The id of the object that was changed. */
  readonly entity: string
  /** More facts; never a secret. */
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * The audit log row of an event. Modules pass it to their own transaction (`recordAudit`), so that the change and its
 * entry are committed together.
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

/** The wire's placeholder for an empty field (reference redis 1.10). */
const NOTHING = 'NA'

/** An audit log entry as the management API shows it. `customer` is the account's e-mail or the team's id. */
export function auditLogOf(row: NamedAuditRow, customer: string): AuditLog {
  const name = row.entity_name ?? nameIn(row.details)
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
    ...(name !== undefined && { entity_name: name }),
    secondary_entity: NOTHING,
    third_entity: NOTHING,
    readable_format: `${row.actor}: ${row.action} ${row.entity}`.trimEnd(),
    ip: row.ip,
    ttl: timestamp + AUDIT_KEPT_SECONDS,
    reason: '',
    notes: row.details === '{}' ? '' : row.details,
  }
}

/** The name in the details of an entry, such as the name of a deleted database. */
function nameIn(details: string): string | undefined {
  const noted = tryParseJson(details)
  const { name, team_name: team, email } = isObject(noted) ? noted : {}
  return [name, team, email].find((text) => typeof text === 'string')
}

function numberOf(action: string): number {
  return Object.entries(AUDIT_ACTIONS).find(([name]) => name === action)?.[1] ?? 0
}
