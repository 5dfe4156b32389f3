import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { DataTable, type DataTableProps } from './data-table.js'
import { ErrorState, LoadingLines } from './states.js'

type Pages = Pick<
  UseInfiniteQueryResult<unknown, Error>,
  'isPending' | 'error' | 'refetch' | 'hasNextPage' | 'isFetching' | 'fetchNextPage'
>

/** A list that is read page by page: the rows that are there, more as the end comes near, and why reading has failed. */
export function PagedTable<Row>({
  pages,
  rows,
  ...table
}: Omit<DataTableProps<Row>, 'rows' | 'onEnd'> & {
  readonly pages: Pages
  /** The rows of all pages so far; `undefined` while there is no page. */
  readonly rows: readonly Row[] | undefined
}) {
  return (
    <>
      {pages.isPending ? <LoadingLines /> : null}
      {pages.error === null ? null : <ErrorState error={pages.error} onRetry={() => void pages.refetch()} />}
      {rows === undefined ? null : (
        <DataTable
          {...table}
          rows={rows}
          onEnd={pages.hasNextPage && !pages.isFetching ? () => void pages.fetchNextPage() : undefined}
        />
      )}
    </>
  )
}
