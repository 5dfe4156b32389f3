import { useWindowEvent } from '@mantine/hooks'

/** Calls `onLeave` when the user goes back or forward in the browser: a question belongs to the page that it opened on. */
export function useHistoryNavigation(onLeave: () => void): void {
  useWindowEvent('popstate', onLeave)
}
