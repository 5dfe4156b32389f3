import type { Assigned } from './assigned.js'

/** A 0 or 1 that stands for no or yes. */
export type Flag = 0 | 1

/** An owner of databases, messages and runs. */
export interface AccountsTable {
  account_id: string
  email: string
  type: 'free' | 'paid'
  /** The `UserID` inside the queue token; part of webhook URLs. */
  queue_user_id: string
  /** SHA-256 of the queue token, hexadecimal. */
  queue_token_hash: string
  /** The signing keys are kept as they are: each delivery is signed with one. */
  signing_current: string
  signing_next: string
  created_at: number
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
  /** For a key of a team: e-mail of the member that it belongs to, lower case. NULL: the account's own key. */
  holder: string | null
}

/** A team. It is an account of its own (its id is that account's id), so that it owns things as an account does. */
export interface TeamsTable {
  team_id: string
  name: string
  /** Whether the team was to take over its maker's way to pay; kept and shown, without effect here. */
  copy_cc: Flag
  created_at: number
}

/** A member of a team, by e-mail; whoever has that e-mail need not have an account yet. */
export interface TeamMembersTable {
  team_id: string
  /** The e-mail in lower case. */
  email_key: string
  /** The e-mail as it was given. */
  email: string
  role: 'owner' | 'admin' | 'dev' | 'finance'
  created_at: number
}

/** Who did what; entries stay for `AUDIT_KEPT_SECONDS` and go with later ones. */
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
  /** The id of what it was done to. */
  entity: string
  /** JSON object. */
  details: string
  ip: string
  at: number
}

/** The store's own identity, one row: data directories remember it, so that none is used with a foreign store. */
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
  audit_log: AuditLogTable
  teams: TeamsTable
  team_members: TeamMembersTable
}
