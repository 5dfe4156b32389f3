import { vi } from 'vitest'

/**
 * The timeout of long browser tests on shared cores. Each step has its own deadline (`DEADLINE_MS`); this one only ends a
 * test that would never finish.
 */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })
