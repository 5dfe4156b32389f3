import { Center, Stack, Text, Title } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { TextLink } from '../components/link.js'
import { ErrorState } from '../components/states.js'

/** For an address that no page has. */
export function NotFoundPage() {
  return (
    <Center component="main" mih="60vh" p="lg">
      <Stack align="center" gap="xs">
        <Title order={1}>There is no such page</Title>
        <Text c="dimmed">The address may be mistyped, or what it showed is gone.</Text>
        <TextLink to="/">To the home page</TextLink>
      </Stack>
    </Center>
  )
}

/** For what went wrong while a page was drawn or fetched. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  const known = error instanceof Error ? error : new Error(String(error))
  return (
    <Center component="main" mih="60vh" p="lg">
      <ErrorState error={known} onRetry={reset} />
    </Center>
  )
}
