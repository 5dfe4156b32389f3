/**
 * Accounts: who owns databases, messages and runs, and which secrets prove that a caller acts for one.
 *
 * An account has an e-mail, a type (`free` or `paid`), API keys for the management API (HTTP Basic), one queue token
 * for the queue and workflow service (Bearer), and two signing keys for what the queue delivers. API keys and tokens
 * are random and stored only as SHA-256; signing keys are stored as they are, because each delivery needs one.
 *
 * The first start:
 *
 *   store and data directory are bound to each other ── refuses a directory that was used with another store
 *     └─ the store has no account ─┬─ no credentials.json: make secrets, write the file (0600), commit the account
 *                                  └─ credentials.json is there (a crash came between): commit the account from it
 *     └─ the store has accounts ───┬─ credentials.json fits one of them: keep its signing keys up to date
 *                                  └─ it is missing or foreign: go on, and say so in the log
 *
 * A team is an account that people share: its members are known by e-mail, each with a role, and act for it with keys
 * of the team. `teams.ts` and `api-keys.ts` change that; whatever ends there (a key, a membership) is dead at once,
 * because the view in memory is renewed before the change is answered. Somebody who is not a member learns nothing
 * about a team.
 *
 * Signing in to the console opens a session: a cookie that stands for one API key and ends with it (`sessions.ts`).
 *
 * The audit log records every change: who made it, from where and with which key (`audit.ts`, `audit-view.ts`).
 *
 * An operator who has the data directory but no credentials gets new ones while the server is stopped (`reset.ts`).
 *
 * Promises: no account is ever left without credentials that somebody has; every refused credential costs the same
 * work, whichever half of it was wrong; secrets never reach the log. Accounts are few and held in memory, so that
 * recognising a caller waits for nothing.
 */
export { type Accounts, type AccountsOptions, createAccounts } from './accounts.js'
export { type AuditEvent, auditRow } from './audit.js'
export { type Credentials, credentialsPath, newCredentials, readCredentials, writeCredentials } from './credentials.js'
export { type Account, emailKeyOf, type SigningKeys } from './directory.js'
export { type ResetOptions, resetCredentials } from './first-account.js'
export { accountRoutes, type SessionRoutesOptions, sessionRoutes } from './routes.js'
export { StoreMark } from './store-mark.js'
