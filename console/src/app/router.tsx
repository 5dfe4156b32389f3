import { createRouter } from '@tanstack/react-router'
import { accountRoutes } from '../pages/account/routes.js'
import { bulkRoutes } from '../pages/bulk/routes.js'
import { databaseRoutes } from '../pages/databases/routes.js'
import { homeRoutes } from '../pages/home/routes.js'
import { queueRoutes } from '../pages/queue/routes.js'
import { workflowRoutes } from '../pages/workflows/routes.js'
import { PageError } from './fallbacks.js'
import { rootRoute, shellRoute } from './root.js'

/** All pages. Each area lists its own in `pages/<area>/routes.tsx`. */
const tree = rootRoute.addChildren([
  shellRoute.addChildren([
    ...homeRoutes,
    ...databaseRoutes,
    ...queueRoutes,
    ...workflowRoutes,
    ...bulkRoutes,
    ...accountRoutes,
  ]),
])

/** The router. A page is loaded when the pointer is on a link to it. */
export const router = createRouter({
  routeTree: tree,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultErrorComponent: PageError,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
