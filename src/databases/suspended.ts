import type { SUSPENDERS } from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { DatabaseRow } from './lifecycle.js'

/** Who or what has suspended a database. */
export type Suspender = (typeof SUSPENDERS)[number]

/** The columns that decide whether a database is suspended. */
export type SuspensionColumns = Pick<DatabaseRow, 'database_id' | 'account_id' | 'state' | 'suspended_by_owner'>

/** Suspensions that are not stored with the databases. */
export interface Suspended {
  /** Whether the operator has suspended the account that owns a database. */
  isAccountSuspended(accountId: string): boolean
}

/** No account is suspended. */
export const NOBODY_SUSPENDED: Suspended = { isAccountSuspended: () => false }

/**
 * Why a database is suspended; undefined when it serves. The three reasons are independent: none ends another. If several
 * apply, the reason that the owner can do least about is named.
 */
export function suspensionOf(row: SuspensionColumns, suspended: Suspended): Suspender | undefined {
  if (suspended.isAccountSuspended(row.account_id)) return 'operator'
  if (row.suspended_by_owner === 1) return 'owner'
  return row.state === 'suspended' ? 'budget' : undefined
}

/** The error that refuses commands while the operator or the owner has suspended a database; ignores the budget. */
export function haltOf(row: SuspensionColumns, suspended: Suspended): HomeportError | undefined {
  if (suspended.isAccountSuspended(row.account_id)) return new HomeportError('account_suspended', {})
  if (row.suspended_by_owner !== 1) return undefined
  return new HomeportError('database_suspended', { databaseId: row.database_id })
}

/** The error that refuses commands of a suspended database, for whatever reason; undefined when it serves. */
export function refusalOfSuspended(row: SuspensionColumns, suspended: Suspended): HomeportError | undefined {
  const halt = haltOf(row, suspended)
  return halt ?? (row.state === 'suspended' ? new HomeportError('budget_exceeded', {}) : undefined)
}
