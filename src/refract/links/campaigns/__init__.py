"""Campaign parameters of destinations (UTM), and templates of them."""
