import { afterAll, afterEach, beforeAll } from 'vitest'
import { openStore, type Store } from '../../store/index.js'
import { migratedDataDir } from '../../store/testing/migrated-file.js'
import {
  type App,
  type AppRoutes,
  startApp,
  startWorkflows,
  type WorkflowsUnderTest,
  type WorkflowsUnderTestOptions,
} from './harness.js'

/** A store, a service and a host for apps; apps are closed after each test. */
export interface Suite {
  readonly service: WorkflowsUnderTest
  readonly store: Store
  host(routes: AppRoutes): Promise<App>
}

/** Opens an SQLite store and a service for a suite, and closes them after it. Use its members inside tests only. */
export function useWorkflows(options: Omit<WorkflowsUnderTestOptions, 'store'> = {}): Suite {
  const apps: App[] = []
  let service: WorkflowsUnderTest | undefined
  let store: Store | undefined
  beforeAll(async () => {
    const onFailure = (error: Error): void => {
      throw error
    }
    store = await openStore({ location: 'sqlite', dataDir: migratedDataDir(), onFailure })
    service = await startWorkflows({ ...options, store })
  })
  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()))
  })
  afterAll(async () => {
    await service?.stop()
    await store?.close()
  })
  return {
    get service(): WorkflowsUnderTest {
      return opened(service)
    },
    get store(): Store {
      return opened(store)
    },
    async host(routes) {
      const app = await startApp(opened(service), routes)
      apps.push(app)
      return app
    },
  }
}

function opened<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the suite has not been set up')
  return value
}
