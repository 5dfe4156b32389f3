import { Tooltip } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { ago, dateTime } from '../lib/format.js'

const TICK_MS = 5_000
const listeners = new Set<() => void>()
let nowMs = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

/** One timer for all times on a page, and none when there is no time on it. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    nowMs = Date.now()
    for (const each of listeners) each()
  }, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The present in Unix milliseconds; the component is drawn again as it goes on. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => nowMs)

/** A time as a distance from now, which people grasp; the exact time is one pointer or focus away. */
export function When({ atMs }: { atMs: number }) {
  const now = useNow()
  return (
    <Tooltip label={dateTime(atMs)}>
      <time dateTime={new Date(atMs).toISOString()}>{ago(atMs, now)}</time>
    </Tooltip>
  )
}
