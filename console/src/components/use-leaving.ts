import { useWindowEvent } from '@mantine/hooks'

/** Calls back when the user goes back or forward in the history of the browser: a question is about the page that it opened on. */
export function useLeaving(onLeave: () => void): void {
  useWindowEvent('popstate', onLeave)
}
