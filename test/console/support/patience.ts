import { vi } from 'vitest'

/**
 * Journeys of many steps in a browser that shares its cores with everything else. Each step has its own deadline
 * (`DEADLINE_MS`); this one only ends a test that would go on forever.
 */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })
