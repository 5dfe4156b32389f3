import { Tooltip } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { clockMs, watchClock } from '../lib/clock.js'
import { ago, dateTime } from '../lib/format.js'

/** The present in Unix milliseconds; the component is drawn again as it goes on. */
export const useNow = (): number => useSyncExternalStore(watchClock, clockMs)

/** A time as a distance from now, which people grasp; the exact time is one pointer or focus away. */
export function When({ atMs }: { atMs: number }) {
  const now = useNow()
  return (
    <Tooltip label={dateTime(atMs)}>
      <time dateTime={new Date(atMs).toISOString()}>{ago(atMs, now)}</time>
    </Tooltip>
  )
}
