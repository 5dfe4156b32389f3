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

/** A list that is read page by page: the rows that are there, more as the end comes near, and why reading has failed. */
export function PagedTable<Row>({
  pages,
  rows,
  looked,
  empty,
  ...table
}: Omit<DataTableProps<Row>, 'rows' | 'onEnd'> & {
  readonly pages: Pages
  /** The rows of all pages so far; `undefined` while there is no page. */
  readonly rows: readonly Row[] | undefined
  /**
   * For rows that were picked out of the pages: what was looked at so far. More is read when somebody asks for it, and
   * not until enough rows are found, which may take everything.
   */
  readonly looked?: string | undefined
}) {
  if (rows === undefined)
    return pages.error === null ? (
      <LoadingLines />
    ) : (
      <ErrorState error={pages.error} onRetry={() => void pages.refetch()} />
    )
  const isAutomatic = pages.hasNextPage && looked === undefined && !pages.isFetchNextPageError
  const isOpen = pages.hasNextPage && looked !== undefined
  return (
    <div aria-busy={pages.isPlaceholderData} style={pages.isPlaceholderData ? { opacity: 0.5 } : undefined}>
      <DataTable
        {...table}
        rows={rows}
        onEnd={isAutomatic && !pages.isFetching ? () => void pages.fetchNextPage() : undefined}
        empty={isOpen ? <EmptyState title="None so far">There is more to look at.</EmptyState> : empty}
      />
      <Rest pages={pages} looked={isOpen ? looked : undefined} />
    </div>
  )
}

/** What is below the last row while there is more. */
function Rest({ pages, looked }: { pages: Pages; looked: string | undefined }) {
  const { error, isFetchNextPageError, isFetchingNextPage, fetchNextPage } = pages
  const text = isFetchNextPageError ? `More could not be read: ${error?.message}` : looked
  if (text === undefined) return null
  return (
    <Group justify="space-between" px="md" py="xs" gap="xs">
      <Text size="xs" c={isFetchNextPageError ? 'var(--mantine-color-error)' : 'dimmed'} role="status">
        {text}
      </Text>
      <Button size="compact-xs" variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        {isFetchNextPageError ? 'Try again' : 'Look further'}
      </Button>
    </Group>
  )
}
