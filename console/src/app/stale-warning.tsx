import { Affix, Paper } from '@mantine/core'
import type { QueryState } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { ApiError, isWithoutAnswer } from '../api/client.js'
import { queries } from '../api/session.js'
import { Status } from '../components/status.js'
import { dateTime } from '../lib/format.js'

/** Whether to warn of an error. Pages show a missing item (404) themselves; an ended session (401) has its own dialog. */
const isWarnedOf = (error: unknown): boolean => error instanceof ApiError && ![401, 404].includes(error.status)

/** The oldest data on the page that could not be refreshed; `undefined` if all data could be. */
function stalest(): QueryState | undefined {
  return queries
    .getQueryCache()
    .getAll()
    .filter((query) => query.isActive() && query.state.data !== undefined && isWarnedOf(query.state.error))
    .map(({ state }) => state)
    .sort((one, other) => one.dataUpdatedAt - other.dataUpdatedAt)[0]
}

const subscribe = (listener: () => void): (() => void) => queries.getQueryCache().subscribe(listener)

/** Warns that the page could not be refreshed: it still shows older data, which would look current. */
export function StaleWarning() {
  const stale = useSyncExternalStore(subscribe, stalest)
  if (stale === undefined) return null
  const { dataUpdatedAt, error } = stale
  const [title, reason] = isWithoutAnswer(error)
    ? ['The server does not respond', '']
    : ['This page could not be refreshed', `${error?.message} `]
  return (
    <Affix position={{ bottom: 16, left: 16, right: 16 }} style={{ pointerEvents: 'none' }}>
      <Paper withBorder shadow="md" p="sm" maw={480} mx="auto" role="alert">
        <Status tone="bad">{title}</Status>
        <div style={{ fontSize: 'var(--mantine-font-size-sm)' }}>
          {reason}This page shows data from {dateTime(dataUpdatedAt)}. The console asks again until the server responds.
        </div>
      </Paper>
    </Affix>
  )
}
