import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { searchFilter } from '../search.js'
import { whole } from '../words/figures.js'
import { MAX_AUDIT_ENTRIES, MAX_AUDIT_SEARCHED } from './audit-limits.js'

/**
 * All actions of the audit log with their numbers. Clients depend on the number of `Delete Team` only (reference redis
 * 1.10). A number is never reused for another action.
 */
export const AUDIT_ACTIONS = {
  'Create Database': 1,
  'Delete Database': 2,
  'Rename Database': 3,
  'Reset Database Password': 4,
  'Enable Database TLS': 5,
  'Change Database Eviction': 6,
  'Change Database Auto Upgrade': 7,
  'Change Database Plan': 8,
  'Change Database Budget': 9,
  'Change Database Regions': 10,
  'Move Database': 11,
  'Create Team': 12,
  'Delete Team': 13,
  'Add Team Member': 14,
  'Remove Team Member': 15,
  'Create API Key': 16,
  'Delete API Key': 17,
  'Change Database Production Pack': 18,
  'Change Database Allow List': 19,
  'Cancel Workflow Runs': 20,
  'Create Backup': 21,
  'Delete Backup': 22,
  'Restore Backup': 23,
  'Import Database': 24,
  'Rotate Signing Keys': 25,
  'Suspend Database': 26,
  'Resume Database': 27,
  'Change Database Users': 28,
  'Change Database Settings': 29,
  'Reset Credentials': 30,
  'Change Database Mutual TLS': 31,
  'Enable Daily Backup': 32,
  'Disable Daily Backup': 33,
  'Accept Data Loss': 34,
  'Move Database to Node': 35,
  'Set Database Standby': 36,
  'Remove Database Standby': 37,
  'Promote Database Standby': 38,
  'Set Aside Database Files': 39,
  'Adopt Files': 40,
  'Lose Database Node': 41,
  'Create Queue Token': 50,
  'Delete Queue Token': 52,
  'Rotate API Key': 53,
  'Create Account': 54,
  'Suspend Account': 55,
  'Resume Account': 56,
  'Delete Account': 57,
  'Change Account': 58,
  'Cancel Messages': 60,
  'Resume Workflow Runs': 61,
  'Restart Workflow Runs': 62,
  'Delete Dead Workflow Runs': 63,
  'Delete Dead Letters': 64,
  'Retry Dead Letters': 65,
  'Pause Bulk Action': 66,
  'Resume Bulk Action': 67,
  'Change Bulk Action': 68,
  'Abort Bulk Action': 69,
  'Lift Fence': 70,
  'Retry Failure Callbacks': 71,
  'Undo Cancel of Workflow Runs': 72,
  'Undo Cancel of Messages': 73,
  'Pause Workflow Runs': 74,
  'Resume Paused Workflow Runs': 75,
  'Save Bulk Selector': 76,
  'Delete Bulk Selector': 77,
  'Pause Workflow': 78,
  'Resume Workflow': 79,
  'Rotate Queue Token': 80,
  'Change Queue': 81,
  'Create Alert Channel': 90,
  'Change Alert Channel': 91,
  'Delete Alert Channel': 92,
  'Create Alert Silence': 93,
  'Delete Alert Silence': 94,
  'Change Alert Rule': 95,
} as const

/** An action of the audit log. */
export type AuditAction = keyof typeof AUDIT_ACTIONS

const text = (description: string) => Type.String({ description })

/** An entry of the audit log (reference redis 1.10). */
export const AuditLogSchema = Type.Object({
  log_id: text('Identifier of the entry.'),
  customer_id: text('E-mail of the account, or id of the team.'),
  actor: text('E-mail of the actor.'),
  timestamp: Type.Integer({ description: 'When it happened, Unix seconds.' }),
  action: Type.Integer({ description: 'Number of the action; 0 for an action without a number.' }),
  action_string: text('Name of the action.'),
  source: text(
    'Credential of the actor: `API_KEY - <name of the key>`, `QUEUE_TOKEN`, `QUEUE_TOKEN - <name of the token>` or `SYSTEM`.',
  ),
  entity: text('Identifier of the changed entity.'),
  entity_name: Type.Optional(
    text('Name of the entity: its current name, or the name stored in the entry. Absent if there is none.'),
  ),
  secondary_entity: text('`NA` when there is none.'),
  third_entity: text('`NA` when there is none.'),
  readable_format: text('The entry as a sentence.'),
  ip: text('IP address of the actor.'),
  ttl: Type.Integer({ description: 'The entry is kept at least until this time, Unix seconds.' }),
  reason: text('Always empty.'),
  notes: text('Details as JSON, without secrets.'),
})

/** An entry of the audit log as the management API shows it. */
export type AuditLog = Static<typeof AuditLogSchema>

/**
 * Response headers of a search that has not reached the end of the log: the `log_id` of the last entry that it searched, and
 * when that entry was written, Unix seconds. They are headers because the body is a list.
 */
export const SEARCHED_TO = 'Homeport-Searched-To'
export const SEARCHED_TO_TIME = 'Homeport-Searched-To-Time'

const AuditQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_AUDIT_ENTRIES,
      description: `Entries per page. Default: ${MAX_AUDIT_ENTRIES}.`,
    }),
  ),
  before: Type.Optional(text('`log_id` of the last entry of the previous page; only older entries are returned.')),
  search: searchFilter(
    `Entries whose action, actor, entity, source or notes contain this text. One request searches ${whole(MAX_AUDIT_SEARCHED)} entries: the newest ones, or those before \`before\`. If there are older entries, send the response header \`${SEARCHED_TO}\` as \`before\` to continue; \`${SEARCHED_TO_TIME}\` has the time of that entry, Unix seconds`,
  ),
})

const auditLogsAt = <const Id extends string>(id: Id, path: string, summary: string) =>
  endpoint({
    id,
    service: 'management',
    topic: 'Audit log',
    method: 'GET',
    path,
    auth: 'basic',
    access: 'read',
    cost: 'heavy',
    summary,
    description: 'All changes of this account or team, newest first.',
    query: AuditQuery,
    body: { kind: 'none' },
    success: { status: 200, description: 'The entries.', body: Type.Array(AuditLogSchema) },
    errors: ['store_unavailable'],
  })

/** Reads the audit log. */
export const listAuditLogs = auditLogsAt('listAuditLogs', '/v2/auditlogs', 'Read the audit log')

/** Reads the audit log at the root of the host, as in the reference. */
export const listAuditLogsAtRoot = auditLogsAt(
  'listAuditLogsAtRoot',
  '/auditlogs',
  'Read the audit log, by its other path',
)
