import { Tooltip } from '@mantine/core'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { clockMs, watchClock } from '../lib/clock.js'
import { ago, dateTime } from '../lib/format.js'

/** The present in Unix milliseconds; the component renders again on each tick. */
export const useNow = (): number => useSyncExternalStore(watchClock, clockMs)

/** A relative time, which renders again when its text changes; `ExactTimes` shows the exact one. */
export function When({ atMs }: { atMs: number }) {
  const text = useSyncExternalStore(watchClock, () => ago(atMs, clockMs()))
  return <time dateTime={new Date(atMs).toISOString()}>{text}</time>
}

const timeAt = (target: EventTarget | null): HTMLTimeElement | null =>
  target instanceof Element ? target.closest('time') : null

/** Shows the exact time of a relative one on hover or touch. All times share one tooltip, because a list has hundreds. */
export function ExactTimes() {
  const [time, setTime] = useState<HTMLTimeElement | null>(null)
  useEffect(() => {
    const point = ({ target }: PointerEvent) => setTime(timeAt(target))
    const dismiss = ({ key }: KeyboardEvent) => key === 'Escape' && setTime(null)
    document.addEventListener('pointerover', point)
    document.addEventListener('keydown', dismiss)
    return () => {
      document.removeEventListener('pointerover', point)
      document.removeEventListener('keydown', dismiss)
    }
  }, [])
  return time === null ? null : <Tooltip target={time} label={dateTime(Date.parse(time.dateTime))} opened />
}
