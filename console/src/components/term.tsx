import { Code } from '@mantine/core'
import type { ReactNode } from 'react'

/** Code within a sentence. */
export function Term({ children }: { children: ReactNode }) {
  return <Code style={{ background: 'var(--hp-code)', color: 'inherit' }}>{children}</Code>
}
