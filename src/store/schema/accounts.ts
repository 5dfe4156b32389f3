import type { Generated } from 'kysely'
import type { Assigned } from './assigned.js'

/** A boolean: 0 or 1. */
export type Flag = 0 | 1

/** An owner of databases, messages and runs. */
export interface AccountsTable {
  account_id: string
  email: string
  type: 'free' | 'paid'
  /** The `UserID` inside the queue token; part of webhook URLs. */
  queue_user_id: string
  /** SHA-256 of the first queue token, hexadecimal; `revoked <account_id>` when it is deleted. Requests are checked against `queue_tokens`. */
  queue_token_hash: string
  /** Plain text: each delivery is signed with one of them. */
  signing_current: string
  signing_next: string
  created_at: number
  /** The queue token, encrypted; the management API shows it to its owner. NULL where only its hash is known. */
  queue_token: Generated<string | null>
  /** A queue token that may only read, encrypted; NULL where there is none yet. */
  queue_read_token: Generated<string | null>
  /** SHA-256 of that token, hexadecimal. */
  queue_read_token_hash: Generated<string | null>
  /** Plan, budget in US dollars and production pack of the queue, as its owner set them; kept and shown, without effect. */
  queue_plan: Generated<string>
  queue_budget: Generated<number>
  queue_production_pack: Generated<Flag>
  /** Whether it is the operator's: the first account of the server. */
  operator: Generated<Flag>
  state: Generated<'active' | 'suspended' | 'deleting'>
  /** Most databases of the account and of each team that it owns; NULL: the limit of its type. */
  database_limit: Generated<number | null>
  /** Most messages a day, likewise; NULL: the limit of its type. */
  daily_messages: Generated<number | null>
}

/** A key of the management API. */
export interface ApiKeysTable {
  key_id: string
  account_id: string
  name: string
  /** SHA-256 of the key, hexadecimal. */
  key_hash: string
  read_only: Flag
  created_at: number
  /** For a team's key: e-mail of its member, lower case. NULL for the account's own keys. */
  holder: string | null
  /** Time from which the key is refused, Unix milliseconds; NULL: never. */
  expires_at: number | null
  /** Unix milliseconds; NULL: never. Written with a delay of up to a minute. */
  last_used_at: number | null
  /** SHA-256 of the key before the last rotation, which is accepted until `previous_until`. */
  previous_hash: string | null
  previous_until: number | null
}

/** A queue token: by name, or one of the first two of an account. */
export interface QueueTokensTable {
  token_id: string
  account_id: string
  name: string
  /** SHA-256 of the token, hexadecimal. */
  token_hash: string
  scope: 'all' | 'publish' | 'read' | 'queue' | 'flow_control'
  /** The queue or flow-control key of those scopes; NULL for the others. */
  scope_name: string | null
  created_at: number
  /** These four as for API keys. */
  expires_at: number | null
  last_used_at: number | null
  previous_hash: string | null
  previous_until: number | null
  /** Set for the two tokens whose secrets the management API shows: `accounts` has them encrypted. NULL for all others. */
  first_token: 'all' | 'read' | null
}

/** A team. It is also an account with the same id, so it owns databases and a queue as an account does. */
export interface TeamsTable {
  team_id: string
  name: string
  /** Whether the team should use its creator's payment method; stored and shown, without effect. */
  copy_cc: Flag
  created_at: number
}

/** A member of a team, by e-mail; an account with that e-mail need not exist yet. */
export interface TeamMembersTable {
  team_id: string
  /** The e-mail in lower case. */
  email_key: string
  /** The e-mail as the request spelled it. */
  email: string
  role: 'owner' | 'admin' | 'dev' | 'finance'
  created_at: number
}

/** An entry of the audit log; kept for `AUDIT_KEPT_SECONDS`, deleted when later entries are added. */
export interface AuditLogTable {
  seq: Assigned<number>
  log_id: string
  account_id: string
  /** Who: e-mail of the account or name of the key. */
  actor: string
  /** How: `API_KEY - <name>`, `QUEUE_TOKEN`, `SYSTEM`. */
  source: string
  /** What, in words: `Create Database`, `Cancel Workflow Runs`. */
  action: string
  /** Id of the affected object. */
  entity: string
  /** JSON object. */
  details: string
  ip: string
  at: number
}

/** The identity of the store, one row. A data directory records it, so that it is not used with another store. */
export interface InstallationTable {
  /** Always 1: there is one row. */
  place: number
  installation_id: string
  created_at: number
}

/** A session of the console: a cookie that stands for an API key. */
export interface ConsoleSessionsTable {
  /** SHA-256 of the secret in the cookie, hexadecimal. */
  secret_hash: string
  key_id: string
  /** SHA-256 of the secret of the key at login. NULL: a node of an older version created the session. */
  key_hash: string | null
  created_at: number
  /** Extended while the session is used. */
  expires_at: number
}

/** Tables of the module accounts. */
export interface AccountTables {
  installation: InstallationTable
  accounts: AccountsTable
  api_keys: ApiKeysTable
  console_sessions: ConsoleSessionsTable
  queue_tokens: QueueTokensTable
  audit_log: AuditLogTable
  teams: TeamsTable
  team_members: TeamMembersTable
}
