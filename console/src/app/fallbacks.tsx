import { Center, Stack, Text, Title } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { TextLink } from '../components/link.js'
import { ErrorState } from '../components/states.js'

/** Shown for a URL that has no page. */
export function NotFoundPage() {
  return (
    <Center component="main" mih="60vh" p="lg">
      <Stack align="center" gap="xs">
        <Title order={1}>Page not found</Title>
        <Text c="dimmed">Check the address; the item that it showed may have been deleted.</Text>
        <TextLink to="/">Go to the home page</TextLink>
      </Stack>
    </Center>
  )
}

/** Shown when a page failed to load or to render. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  const known = error instanceof Error ? error : new Error(String(error))
  return (
    <Center component="main" mih="60vh" p="lg">
      <ErrorState error={known} onRetry={reset} />
    </Center>
  )
}
