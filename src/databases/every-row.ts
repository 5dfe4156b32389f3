import type { Store } from '../store/index.js'
import * as databases from './transactions/databases.js'

type DatabaseRow = databases.DatabaseRow

/** So many are read at a time: reading all at once keeps others waiting. */
export const PAGE_ROWS = 250

/** What is stored of every database of every account, by their ids. */
export async function everyRow(store: Pick<Store, 'run'>): Promise<readonly DatabaseRow[]> {
  const rows: DatabaseRow[] = []
  let after: string | undefined = ''
  do {
    const page: DatabaseRow[] = await store.run(databases.load, { after, limit: PAGE_ROWS })
    rows.push(...page)
    after = page.length < PAGE_ROWS ? undefined : page.at(-1)?.database_id
  } while (after !== undefined)
  return rows
}
