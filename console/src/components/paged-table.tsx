import { Button, Group, Text, VisuallyHidden } from '@mantine/core'
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { counted, dateTime } from '../lib/format.js'
import { DataTable, type DataTableProps } from './data-table.js'
import { EmptyState, ErrorState, LoadingLines, useLoadError } from './states.js'

type Pages = Pick<
  UseInfiniteQueryResult<unknown, Error>,
  | 'error'
  | 'refetch'
  | 'hasNextPage'
  | 'isFetchingNextPage'
  | 'isFetchNextPageError'
  | 'isPlaceholderData'
  | 'fetchNextPage'
>

/** The progress of a search in which the browser or the server tests rows one by one. */
export interface Searched {
  /** The progress so far, in words. */
  readonly found: string
  /** All newer rows were searched, Unix milliseconds; `undefined` if that is not known. */
  readonly toMs: number | undefined
  /** The text of the button that loads more, if loading more is not a search. */
  readonly onward?: string
  /** The server searches, so that pages without rows cost the browser nothing. */
  readonly isByServer?: true
}

/**
 * The progress of a filtered list whose last page is not full: the server has searched as many rows as one request may, and
 * continues with the next request.
 */
export const foundSoFar = (found: string, toMs: number | undefined): Searched => ({
  found: `${found} found so far; older ones are not searched yet`,
  toMs,
  isByServer: true,
})

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
   * The progress, if rows are tested one by one. Then more rows are loaded only on demand, because loading until enough rows
   * match could load all rows.
   */
  readonly searched?: Searched | undefined
}) {
  const error = useLoadError({ data: rows, error: pages.error })
  if (rows === undefined)
    return error === null ? <LoadingLines /> : <ErrorState error={error} onRetry={() => void pages.refetch()} />
  const isAutomatic = pages.hasNextPage && searched === undefined && !pages.isFetchNextPageError
  const isOpen = pages.hasNextPage && searched !== undefined
  return (
    <div aria-busy={pages.isPlaceholderData} style={pages.isPlaceholderData ? { opacity: 0.5 } : undefined}>
      <FoundRows pages={pages} count={rows.length} />
      <DataTable
        {...table}
        rows={rows}
        onEnd={isAutomatic && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
        empty={
          isOpen ? <EmptyState title="No matches so far">Not everything has been searched yet.</EmptyState> : empty
        }
      />
      <Rest pages={pages} searched={isOpen ? searched : undefined} count={rows.length} />
    </div>
  )
}

/** Announces the number of rows to screen readers, at first and after each change of the filters; not at each refresh. */
function FoundRows({ pages: { isPlaceholderData, hasNextPage }, count }: { pages: Pages; count: number }) {
  const [text, setText] = useState('')
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows that come later are not news.
  useEffect(() => {
    if (isPlaceholderData) return setText('')
    setText(count === 0 ? 'No rows' : `${counted(count, 'row')}${hasNextPage ? ', and more' : ''}`)
  }, [isPlaceholderData])
  return <VisuallyHidden role="status">{text}</VisuallyHidden>
}

const onwardOf = ({ toMs, onward = 'Search further' }: Partial<Searched> = {}): string =>
  toMs === undefined ? onward : `Search further from ${dateTime(toMs)}`

/** Loads page by page until a new row is found, or no page is left. */
function useNextMatch(
  { isFetchingNextPage, isFetchNextPageError, fetchNextPage }: Pages,
  isOpen: boolean,
  count: number,
) {
  /** The rows at the beginning of the search. */
  const [before, setBefore] = useState<number | undefined>()
  const isOn = isOpen && before === count && !isFetchNextPageError
  useEffect(() => {
    if (isOn && !isFetchingNextPage) void fetchNextPage()
  }, [isOn, isFetchingNextPage, fetchNextPage])
  return { isOn, start: () => setBefore(count), stop: () => setBefore(undefined) }
}

/** The footer while there may be more rows. */
function Rest({ pages, searched, count }: { pages: Pages; searched: Searched | undefined; count: number }) {
  const { error, isFetchNextPageError, isFetchingNextPage, fetchNextPage } = pages
  const search = useNextMatch(pages, searched?.isByServer === true, count)
  const text = isFetchNextPageError ? `More rows could not be loaded: ${error?.message}` : searched?.found
  if (text === undefined) return null
  return (
    <Group justify="space-between" px="md" py="xs" gap="xs">
      <Text size="xs" c={isFetchNextPageError ? 'var(--mantine-color-error)' : 'dimmed'} role="status">
        {text}
      </Text>
      <Group gap="xs">
        <Button
          size="compact-xs"
          variant="default"
          loading={isFetchingNextPage && !search.isOn}
          disabled={search.isOn}
          onClick={() => void fetchNextPage()}
        >
          {isFetchNextPageError ? 'Try again' : onwardOf(searched)}
        </Button>
        {searched?.isByServer === true ? (
          <Button size="compact-xs" variant="default" onClick={search.isOn ? search.stop : search.start}>
            {search.isOn ? 'Stop the search' : 'Search to the next match'}
          </Button>
        ) : null}
      </Group>
    </Group>
  )
}
