/** The parents of all routes: the root, and the shell, which only signed-in users see. */
import { createRootRoute, createRoute, Outlet } from '@tanstack/react-router'
import { queries, settingsQuery } from '../api/session.js'
import { ErrorPage, NotFoundPage } from './fallbacks.js'
import { Shell } from './shell.js'

/** The root of all pages. */
export const rootRoute = createRootRoute({
  component: Outlet,
  notFoundComponent: NotFoundPage,
  errorComponent: ErrorPage,
})

/** Pages inside the shell: with navigation, for signed-in users. */
export const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'shell',
  component: Shell,
  beforeLoad: async () => {
    await queries.ensureQueryData(settingsQuery)
  },
})
