/**
 * A change of a database is made by its home. A request that was on its way when the database moved is refused to the old one:
 * the new home would not notice what another node changes.
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

/** The answer to a change that has waited for a move of the database: asked again, the new home makes it. */
export const HAS_MOVED = { kind: 'busy', modifyingState: 'updating_regions' } as const

/** Whether a node may change a database. Undefined and the empty text: any node may. */
export const isHomeOf = (row: Pick<Selectable<DatabasesTable>, 'home'>, home: string | undefined): boolean =>
  home === undefined || home === '' || row.home === home
