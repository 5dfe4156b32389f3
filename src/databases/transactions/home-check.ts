/**
 * Only the home of a database changes it. A request that was in transit when the database moved is refused at the old home,
 * because the new home would not notice a change by another node.
 */
import type { Selectable } from 'kysely'
import type { DatabasesTable } from '../../store/schema/databases.js'

/** A database and its required owner. */
export interface DatabaseOfAccount {
  readonly accountId: string
  readonly databaseId: string
  /** The node that makes the change. Undefined: whichever is the home. */
  readonly home?: string | undefined
}

/** The answer to a change that has waited for a move of the database. When it is requested again, the new home makes it. */
export const HAS_MOVED = { kind: 'busy', modifyingState: 'updating_regions' } as const

/** Whether a node may change a database. Undefined and the empty text: any node may. */
export const isHomeOf = (row: Pick<Selectable<DatabasesTable>, 'home'>, home: string | undefined): boolean =>
  home === undefined || home === '' || row.home === home
