import { Button, Group, Text } from '@mantine/core'
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { DataTable, type DataTableProps } from './data-table.js'
import { EmptyState, ErrorState, LoadingLines } from './states.js'

type Pages = Pick<
  UseInfiniteQueryResult<unknown, Error>,
  | 'error'
  | 'refetch'
  | 'hasNextPage'
  | 'isFetching'
  | 'isFetchingNextPage'
  | 'isFetchNextPageError'
  | 'isPlaceholderData'
  | 'fetchNextPage'
>

/**
 * The footer of a filtered list whose last page is not full: the server has looked at as many rows as one request may, and
 * goes on when asked.
 */
export const foundSoFar = (found: string): string => `${found} found so far; older ones are not searched yet`

/** A table that loads page by page: its rows, more near the end, and the error when loading fails. */
export function PagedTable<Row>({
  pages,
  rows,
  searched,
  empty,
  ...table
}: Omit<DataTableProps<Row>, 'rows' | 'onEnd'> & {
  readonly pages: Pages
  /** The rows of all pages so far; `undefined` before the first page. */
  readonly rows: readonly Row[] | undefined
  /**
   * For rows that are filtered in the browser: how much was searched so far. More is loaded only on demand: loading
   * until enough rows match might load everything.
   */
  readonly searched?: string | undefined
}) {
  if (rows === undefined)
    return pages.error === null ? (
      <LoadingLines />
    ) : (
      <ErrorState error={pages.error} onRetry={() => void pages.refetch()} />
    )
  const isAutomatic = pages.hasNextPage && searched === undefined && !pages.isFetchNextPageError
  const isOpen = pages.hasNextPage && searched !== undefined
  return (
    <div aria-busy={pages.isPlaceholderData} style={pages.isPlaceholderData ? { opacity: 0.5 } : undefined}>
      <DataTable
        {...table}
        rows={rows}
        onEnd={isAutomatic && !pages.isFetching ? () => void pages.fetchNextPage() : undefined}
        empty={
          isOpen ? <EmptyState title="No matches so far">Not everything has been searched yet.</EmptyState> : empty
        }
      />
      <Rest pages={pages} searched={isOpen ? searched : undefined} />
    </div>
  )
}

/** The footer while there are more rows. */
function Rest({ pages, searched }: { pages: Pages; searched: string | undefined }) {
  const { error, isFetchNextPageError, isFetchingNextPage, fetchNextPage } = pages
  const text = isFetchNextPageError ? `More rows could not be loaded: ${error?.message}` : searched
  if (text === undefined) return null
  return (
    <Group justify="space-between" px="md" py="xs" gap="xs">
      <Text size="xs" c={isFetchNextPageError ? 'var(--mantine-color-error)' : 'dimmed'} role="status">
        {text}
      </Text>
      <Button size="compact-xs" variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        {isFetchNextPageError ? 'Try again' : 'Search further'}
      </Button>
    </Group>
  )
}
