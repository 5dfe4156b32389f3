import { Group, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './status.module.css'

/** How something is doing, in five words for everything. */
export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle'

/** A state in words with a dot of its colour: colour alone would say nothing to many. */
export function Status({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <Group gap={7} wrap="nowrap" component="span" className={classes.status ?? ''}>
      <span className={classes.dot} data-tone={tone} aria-hidden />
      <Text component="span" size="sm" className="truncate">
        {children}
      </Text>
    </Group>
  )
}
