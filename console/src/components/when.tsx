import { Tooltip } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { clockMs, watchClock } from '../lib/clock.js'
import { ago, dateTime } from '../lib/format.js'

/** The present in Unix milliseconds; the component renders again on each tick. */
export const useNow = (): number => useSyncExternalStore(watchClock, clockMs)

/** A relative time; hover or focus shows the exact time. */
export function When({ atMs }: { atMs: number }) {
  const now = useNow()
  return (
    <Tooltip label={dateTime(atMs)}>
      <time dateTime={new Date(atMs).toISOString()}>{ago(atMs, now)}</time>
    </Tooltip>
  )
}
