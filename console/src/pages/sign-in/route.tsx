import { createRoute, redirect } from '@tanstack/react-router'
import { queries, sessionQuery } from '../../api/session.js'
import { lazyPage } from '../../app/lazy-page.js'
import { rootRoute } from '../../app/root.js'

/** The sign-in page; `next` is the console path to open afterwards. */
export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  component: lazyPage(() => import('./sign-in.js'), 'SignInPage'),
  validateSearch: (search: Record<string, unknown>): { next?: string } =>
    // Only paths of this console: other URLs would redirect users to another site.
    typeof search.next === 'string' && /^\/(?![/\\])/.test(search.next) ? { next: search.next } : {},
  beforeLoad: async ({ search }) => {
    const session = await queries.ensureQueryData(sessionQuery)
    if (session !== null) throw redirect({ href: search.next ?? '/' })
  },
})
